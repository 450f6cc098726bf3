"""What a run does not know about itself, and records of other projects need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from lmdiag.hub.names import DEMO_MODELS, is_local, is_repo_id
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.types import ModelInfo

Relationship = Literal["first_party", "third_party", "collaborative", "other"]
RELATIONSHIPS = get_args(Relationship)


@dataclass(frozen=True)
class Provenance:
    """Who made a run, and of which model.

    Attributes:
        model_id: `ORG/NAME` of the model; None for the id that the run was made by.
        organization: that made the run.
        relationship: between this organization and the developer of the model.
    """

    model_id: str | None = None
    organization: str = "unknown"
    relationship: Relationship = "other"

    def model(self, model: ModelInfo) -> str:
        """Returns `ORG/NAME` of the model of a run.

        Raises:
            BadInput: it is a local folder or an id without an organization, and no id was given.
        """
        if self.model_id is not None:
            if not is_repo_id(self.model_id):
                raise BadInput(f"--model-id is {self.model_id!r}: give ORG/NAME, as on the Hub")
            return self.model_id
        if model.id in DEMO_MODELS:
            return f"lmdiag/{model.id.replace(':', '-')}"
        if is_local(model) or not is_repo_id(model.id):
            raise BadInput(
                f"{model.id} does not name the organization of the model: name the model by "
                "--model-id ORG/NAME"
            )
        return model.id
