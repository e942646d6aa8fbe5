"""The host's side of the wall: starts a hostile process, reads only bytes from it, and ends it.

- `launch`: start, watch and kill one confined process tree
- `confinement`: what a guest is given: program, view of the disk, descriptors
- `limits`: how much of the machine a guest may use
- `isolation`: which walls stand around a guest, and which level they make
- `runtime`: the part of the disk that Python needs, and what is hidden inside it
- `log`: the guest's own output, capped and made harmless
- `guest_entry`: the program that builds the walls around itself and then becomes the guest
"""
