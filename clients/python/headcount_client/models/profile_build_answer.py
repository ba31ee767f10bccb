from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from attrs import define as _attrs_define

from ..models.profile_build_answer_status import ProfileBuildAnswerStatus

if TYPE_CHECKING:
    from ..models.build_error_answer import BuildErrorAnswer
    from ..models.company_profile_answer import CompanyProfileAnswer


T = TypeVar("T", bound="ProfileBuildAnswer")


@_attrs_define
class ProfileBuildAnswer:
    """A run.

    Attributes:
        actions_spent (int): How many Actions it took. None if it failed: they were given back.
        error (BuildErrorAnswer | None):
        profile (CompanyProfileAnswer | None):
        run_id (str): The run's id.
        status (ProfileBuildAnswerStatus): How far the run is.
    """

    actions_spent: int
    error: BuildErrorAnswer | None
    profile: CompanyProfileAnswer | None
    run_id: str
    status: ProfileBuildAnswerStatus

    def to_dict(self) -> dict[str, Any]:
        from ..models.build_error_answer import BuildErrorAnswer
        from ..models.company_profile_answer import CompanyProfileAnswer

        actions_spent = self.actions_spent

        error: dict[str, Any] | None
        if isinstance(self.error, BuildErrorAnswer):
            error = self.error.to_dict()
        else:
            error = self.error

        profile: dict[str, Any] | None
        if isinstance(self.profile, CompanyProfileAnswer):
            profile = self.profile.to_dict()
        else:
            profile = self.profile

        run_id = self.run_id

        status = self.status.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "actions_spent": actions_spent,
                "error": error,
                "profile": profile,
                "run_id": run_id,
                "status": status,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        from ..models.build_error_answer import BuildErrorAnswer
        from ..models.company_profile_answer import CompanyProfileAnswer

        d = dict(src_dict)
        actions_spent = d.pop("actions_spent")

        def _parse_error(data: object) -> BuildErrorAnswer | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                error_type_0 = BuildErrorAnswer.from_dict(data)

                return error_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BuildErrorAnswer | None, data)

        error = _parse_error(d.pop("error"))

        def _parse_profile(data: object) -> CompanyProfileAnswer | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                profile_type_0 = CompanyProfileAnswer.from_dict(data)

                return profile_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CompanyProfileAnswer | None, data)

        profile = _parse_profile(d.pop("profile"))

        run_id = d.pop("run_id")

        status = ProfileBuildAnswerStatus(d.pop("status"))

        profile_build_answer = cls(
            actions_spent=actions_spent,
            error=error,
            profile=profile,
            run_id=run_id,
            status=status,
        )

        return profile_build_answer
