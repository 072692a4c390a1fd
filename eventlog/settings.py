"""Settings of the command line: from the environment (`EVENTLOG_*`) and an optional TOML file.

An option on the command line goes before the environment, the environment before the file. The file is `eventlog.toml` in the current
directory, or what `EVENTLOG_CONFIG` names:

    store = "./orders"
    actor = "night-shift"
    timeout = 10
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from eventlog.errors import ConfigurationError

CONFIG_FILE = "eventlog.toml"
CONFIG_VARIABLE = "EVENTLOG_CONFIG"
DEFAULT_SECONDS = 30.0  # the store's own default


class Settings(BaseSettings):
    """What a command takes when no option says otherwise. `timeout` is in seconds.

    `subject` and `role` (several with commas) say who is asking, `reason` why; `access` how strictly accesses are recorded at least.
    """

    model_config = SettingsConfigDict(env_prefix="EVENTLOG_", env_ignore_empty=True, extra="forbid", frozen=True)

    store: str | None = None
    tenant: str | None = None
    actor: str | None = None
    subject: str | None = None
    role: str | None = None
    reason: str | None = None
    access: Literal["off", "buffered", "strict"] | None = None
    keys: str | None = None  # of an encrypted store, where it does not remember them rightly: see `provider_of`
    timeout: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = DEFAULT_SECONDS
    format: Literal["table", "json", "csv"] = "table"
    log_format: Literal["text", "json"] | None = None  # of the log on stderr; None: there is none
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - a .env file is the application's, not ours
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = config_file()
        return (init_settings, env_settings, *(() if file is None else (TomlConfigSettingsSource(settings_cls, toml_file=file),)))


def config_file() -> Path | None:
    """The file that settings are read from, if there is one. Raises `ConfigurationError` when `EVENTLOG_CONFIG` names none."""
    named = os.environ.get(CONFIG_VARIABLE)
    if named:
        if not Path(named).is_file():
            raise ConfigurationError(f"{CONFIG_VARIABLE} names {named}, which is not a file", hint="Correct or unset it.")
        return Path(named)
    return Path(CONFIG_FILE) if Path(CONFIG_FILE).is_file() else None


def load_settings() -> Settings:
    """The settings in force. Raises `ConfigurationError` that names each key or variable that is unknown or wrong."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = [_described(each["loc"], each["type"], each["msg"]) for each in error.errors(include_url=False, include_context=False)]
        raise ConfigurationError(
            "the settings cannot be used", differences=wrong, hint=f"Known are: {', '.join(Settings.model_fields)}."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{config_file()} cannot be read: {error}", hint="It must be a TOML file.") from error


def _described(place: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(map(str, place))
    if kind == "extra_forbidden":
        return f"{name}: there is no such setting (in {config_file()})"
    variable = f"EVENTLOG_{name.upper()}"
    return f"{name}: {message} ({f'in the variable {variable}' if os.environ.get(variable) else f'in {config_file()}'})"
