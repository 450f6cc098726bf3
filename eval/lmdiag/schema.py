"""Old place of `lmdiag.types` and `lmdiag.protocol`, for branches that are not merged yet."""

from lmdiag.protocol import (
    INSTRUCTION as INSTRUCTION,
)
from lmdiag.protocol import (
    KNOB_VALUES as KNOB_VALUES,
)
from lmdiag.protocol import (
    KNOBS as KNOBS,
)
from lmdiag.protocol import (
    Asking as Asking,
)
from lmdiag.protocol import (
    Bos as Bos,
)
from lmdiag.protocol import (
    Conventions as Conventions,
)
from lmdiag.protocol import (
    FinalPeriod as FinalPeriod,
)
from lmdiag.protocol import (
    FirstLetter as FirstLetter,
)
from lmdiag.protocol import (
    Pll as Pll,
)
from lmdiag.protocol import (
    Predictions as Predictions,
)
from lmdiag.protocol import (
    Protocol as Protocol,
)
from lmdiag.protocol import (
    Unit as Unit,
)
from lmdiag.protocol import (
    asking_of as asking_of,
)
from lmdiag.protocol import (
    checked_ranks as checked_ranks,
)
from lmdiag.protocol import (
    checked_threshold as checked_threshold,
)
from lmdiag.types import (
    AGREEMENT as AGREEMENT,
)
from lmdiag.types import (
    DIAGNOSTICS as DIAGNOSTICS,
)
from lmdiag.types import (
    Answer as Answer,
)
from lmdiag.types import (
    BadInput as BadInput,
)
from lmdiag.types import (
    Kind as Kind,
)
from lmdiag.types import (
    ModelInfo as ModelInfo,
)
from lmdiag.types import (
    Number as Number,
)
from lmdiag.types import (
    Query as Query,
)
from lmdiag.types import (
    Question as Question,
)
from lmdiag.types import (
    Sentence as Sentence,
)
from lmdiag.types import (
    SentenceAnswer as SentenceAnswer,
)
from lmdiag.types import (
    WordScore as WordScore,
)
from lmdiag.types import (
    WordSpan as WordSpan,
)
from lmdiag.types import (
    WordState as WordState,
)
