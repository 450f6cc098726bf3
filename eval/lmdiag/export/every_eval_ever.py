"""A run as a record of Every Eval Ever: a JSON file, and JSON lines with its single items.

The files lie where that project's data store has them: `data/lmdiag/ORG/NAME/UUID.json` and
`UUID_samples.jsonl`. The UUID follows from the content of the run, so that the same run is not
exported twice under two names.

Source: schema version 0.3.0 of https://github.com/evaleval/every_eval_ever (package 0.3.0).
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from lmdiag import __version__
from lmdiag.export.metrics import INTERVALS, is_of_model, metric_of, parameters_of
from lmdiag.export.provenance import Provenance
from lmdiag.export.samples import as_texts, evaluation_name, result_id, sample_records
from lmdiag.hub.names import DEMO_MODELS, is_commit, is_on_hub
from lmdiag.report.labels import measure_label
from lmdiag.results import Figure, Place, Results, Run
from lmdiag.stats import LEVEL
from lmdiag.stimuli.building import script
from lmdiag.types import BadInput
from lmdiag.writing import clear_drafts, replacing, write_atomically

SCHEMA = "0.3.0"
"""Version of the schema that is written."""
COLLECTION = "lmdiag"

_Record = dict[str, Any]


def export(run: Run, folder: Path, provenance: Provenance, *, overwrite: bool) -> list[Path]:
    """Writes the record of a run, and if there are items, their records; see `export_run`."""
    run = replace(run, results=run.results.redacted())
    model_id = provenance.model(run.results.model)
    name = _uuid(run.results)
    inside = PurePosixPath("data", COLLECTION, model_id)
    file = folder / inside / f"{name}.json"
    samples = file.with_name(f"{name}_samples.jsonl")
    if file.exists() and not overwrite:
        raise BadInput(
            f"{file} exists already, with this run: choose another --output, or add --overwrite"
        )
    moment = datetime.fromisoformat(run.results.finished)
    seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    shared: _Record = {
        "schema_version": SCHEMA,
        "evaluation_id": f"{COLLECTION}/{model_id}/{seconds:.0f}-{name[:8]}",
    }
    record = shared | _record(run, model_id, provenance)
    file.parent.mkdir(parents=True, exist_ok=True)
    clear_drafts(file.parent)
    details = _write_samples(run, samples, shared | {"model_id": model_id})
    if details["total_rows"]:
        record["detailed_evaluation_results"] = details | {"file_path": str(inside / samples.name)}
    else:
        samples.unlink()
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(file, f"{text}\n".encode())
    return [file, samples] if details["total_rows"] else [file]


def _uuid(results: Results) -> str:
    """A UUID in the form of version 4, the same for the same run."""
    content = json.dumps([results.identity, results.finished, results.files], sort_keys=True)
    return str(uuid.UUID(bytes=hashlib.sha256(content.encode()).digest()[:16], version=4))


def _write_samples(run: Run, file: Path, shared: _Record) -> _Record:
    """Writes a line for each item, one after the other, and returns what the record says of it."""
    digest, n = hashlib.sha256(), 0
    with replacing(file) as out:
        for record in sample_records(run):
            line = json.dumps(shared | record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
            out.write(line)
            digest.update(line)
            n += 1
    return {
        "format": "jsonl", "hash_algorithm": "sha256",
        "checksum": digest.hexdigest(), "total_rows": n,
    }  # fmt: skip


# ---- the record ----------------------------------------------------------------------------------


def _record(run: Run, model_id: str, provenance: Provenance) -> _Record:
    results = run.results
    return {
        "evaluation_timestamp": results.finished,
        "retrieved_timestamp": f"{time.time():.3f}",
        "source_metadata": {
            "source_name": "lmdiag",
            "source_type": "evaluation_run",
            "source_organization_name": provenance.organization,
            "evaluator_relationship": provenance.relationship,
        },
        "eval_library": {
            "name": "lmdiag",
            "version": results.versions.get("lmdiag", __version__),
            "additional_details": _texts(
                {
                    "signature": results.signature,
                    "versions": results.versions,
                    "device": results.device.name,
                    "processes": results.device.processes,
                }
            ),
        },
        "model_info": _model(results, model_id),
        "evaluation_results": list(_evaluations(run)),
    }


def _model(results: Results, model_id: str) -> _Record:
    model = results.model
    is_open = model.id in DEMO_MODELS or is_commit(model.commit)
    known = {name: fact for name, fact in asdict(model).items() if name not in ("id", "name")}
    return {
        "name": model.name or model_id,
        "id": model_id,
        "developer": model_id.split("/")[0],
        "inference_engine": {
            "name": "transformers", "version": results.versions.get("transformers", "unknown"),
        },
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "open_weights" if is_open else "unknown",
            **_texts(known),
        },
    }  # fmt: skip


def _evaluations(run: Run) -> Iterator[_Record]:
    """Yields the figures that are defined, those of break-downs after the measure as a whole."""
    results = run.results
    sources = {task: _source(run, task) for task in results.tasks}
    for place, figure in results.figures():
        if not is_of_model(place.measure) or figure.value is None:
            continue
        yield {
            "evaluation_result_id": result_id(*place),
            "evaluation_name": evaluation_name(place.task, place.setting, place.by, place.level),
            "source_data": sources[place.task],
            "evaluation_timestamp": results.finished,
            "metric_config": _metric(place.measure, figure),
            "score_details": _score(results, place, figure),
            "generation_config": _protocol(results, place),
        }


def _source(run: Run, task: str) -> _Record:
    """Where the rows of a task come from: the Hub, the repository they were built from, or none."""
    rows = run.stimuli[task]
    facts = {"config": task, "fingerprint": rows.fingerprint, "commit": rows.revision}
    details = {"additional_details": _texts(facts)}
    if is_on_hub(rows.source):
        return {
            "dataset_name": COLLECTION, "source_type": "hf_dataset", "hf_repo": rows.source,
            "hf_split": "test", "samples_number": len(rows), **details,
        }  # fmt: skip
    for entry in script("sources").pinned().values():
        if entry["commit"] == rows.revision:
            address = f"https://github.com/{entry['repository']}/tree/{rows.revision}"
            return {"dataset_name": task, "source_type": "url", "url": [address], **details}
    name = Path(rows.source).name or task
    return {"dataset_name": name, "source_type": "other", **details}


def _metric(measure: str, figure: Figure) -> _Record:
    metric, name = metric_of(measure), measure.partition("@")[0]
    return {
        "evaluation_description": metric.about,
        "metric_id": f"lmdiag.{name}",
        "metric_name": measure_label(measure),
        "metric_kind": name,
        "metric_unit": metric.unit,
        "metric_parameters": parameters_of(measure),
        "lower_is_better": metric.lower_is_better,
        "score_type": "continuous",
        "min_score": metric.low,
        "max_score": metric.high if math.isfinite(metric.high) else "Infinity",
        "additional_details": _texts({"statistic": figure.statistic}),
    }


def _score(results: Results, place: Place, figure: Figure) -> _Record:
    setting = results.tasks[place.task][place.setting]
    details = {
        "chance": figure.chance,
        "sd_over_shuffles": figure.sd,
        "shuffles": figure.runs,
        "break_down": place.by or None,
        "level": place.level or None,
        "unscorable": [row.id for row in setting.unscorable] or None,
        "censored": [row.id for row in setting.censored] or None,
    }
    uncertainty: _Record = {"num_samples": figure.n}
    if figure.ci_low is not None and figure.ci_high is not None and figure.statistic:
        method = INTERVALS[figure.statistic]
        uncertainty["confidence_interval"] = {
            "lower": figure.ci_low,
            "upper": figure.ci_high,
            "confidence_level": LEVEL,
            "method": f"{method}; mean over the shuffles" if figure.runs else method,
        }
    return {"score": figure.value, "details": _texts(details), "uncertainty": uncertainty}


def _protocol(results: Results, place: Place) -> _Record:
    details = {"setting": place.setting, "match": results.match} | asdict(results.protocol)
    for name in ("tasks", "perturb"):
        del details[name]
    details["signature"] = results.tasks[place.task][place.setting].signature
    prompt = results.protocol.prompt
    return {
        "generation_args": {"prompt_template": prompt} if prompt else {},
        "additional_details": _texts(details),
    }


def _texts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Returns the facts that are known and not "" as texts."""
    return as_texts({name: value for name, value in facts.items() if value != ""})
