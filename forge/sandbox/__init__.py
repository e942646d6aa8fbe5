"""The host's side of the wall: start a hostile process, hear only bytes from it, and end it.

- `launch`: start, watch and kill one confined process tree
- `confinement`: what a guest is given: program, view of the disk, descriptors
- `limits`: how much of the machine it may use
- `isolation`: which walls this machine can build, tried and not assumed
- `runtime`: the part of the disk that Python needs, and what is hidden inside it
- `log`: the guest's own output, capped and made harmless
- `enter`: the program that builds the walls around itself and then becomes the guest
"""
