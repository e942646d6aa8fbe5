"""Shows the signing key of a workspace. It loads no models."""

from forge.app.plain_events import HasEvents
from forge.app.stored.keys_place import keys_folder
from forge.ledger.signatures.key_in_force import KEY_EVENTS, SigningState, key_in_force
from forge.ledger.signatures.keyring import Keyring

Data = dict[str, object]


def signing_state_of(home: HasEvents) -> SigningState:
    """Return the log's name and the key in force."""
    return key_in_force((one.seq, one.type, one.event) for one in home.events(*KEY_EVENTS))


def shown_key(home: HasEvents) -> Data:
    """Return the key in force, whether its private key is here, and the adoptions that no key vouches for."""
    state = signing_state_of(home)
    keyring = Keyring(keys_folder(home.home), state.name)
    last = keyring.last
    return {
        "key": state.verifier,
        "private_key_here": state.public is not None and keyring.has(state.public),
        "private_keys": str(keyring.folder),
        "signed_size": last.size if last else None,
        "unvouched_adoptions": list(state.unvouched),
    }
