"""What admins may type. A reason is always asked for."""

from typing import TYPE_CHECKING, Any

from django import forms

from workflows.models import Policy

from .models import AlertRule

if TYPE_CHECKING:
    PolicyModelForm = forms.ModelForm[Policy]
    RuleModelForm = forms.ModelForm[AlertRule]
else:  # generic only for the type checker
    PolicyModelForm = RuleModelForm = forms.ModelForm

MODES = ("enforce", "observe", "off")
# What is done past a run limit, as a person would say it.
OVERRUN = {
    "flag": "say so, and let it run",
    "extend": "say so, and give it as long again",
    "recover": "take it away, and go on elsewhere",
    "fail": "fail it",
}


def _reason() -> forms.CharField:
    return forms.CharField(max_length=500, error_messages={"required": "Say why: a reason is required."})


def _seconds(label: str, help_text: str) -> forms.FloatField:
    any_number = forms.NumberInput(attrs={"step": "any"})
    return forms.FloatField(
        required=False, min_value=0, max_value=1e9, label=label, help_text=help_text, widget=any_number
    )


class PauseForm(forms.Form):
    """The one thing that cannot wait until a form is filled in."""

    pause = forms.ChoiceField(choices=[("yes", "yes"), ("no", "no")])
    reason = _reason()


class PolicyForm(PolicyModelForm):
    concurrency = forms.IntegerField(
        required=False, min_value=1, max_value=1_000_000, help_text="How many run at once, everywhere."
    )
    max_recovery_attempts = forms.IntegerField(
        required=False, min_value=0, max_value=1000, label="Recovery attempts", help_text="In a row, without progress."
    )
    stale_after = _seconds("Stale after", "Seconds of a worker's silence.")
    run_limit = _seconds("Run limit", "Seconds one run may take.")
    keep_finished = _seconds("Keep finished", "Seconds until retention removes it.")
    reason = _reason()

    class Meta:
        model = Policy
        fields = [
            "paused",
            "concurrency",
            "stale_after",
            "max_recovery_attempts",
            "run_limit",
            "on_run_limit",
            "mode",
            "keep_finished",
        ]
        labels = {
            "paused": "Paused",
            "on_run_limit": "When it runs longer",
            "mode": "Recovery mode",
        }
        help_texts = {
            "paused": "New work is accepted and not started.",
            "on_run_limit": "What is done then.",
            "mode": "How orphans of this name are treated.",
        }

    def fill_in(self, in_force: dict[str, Any]) -> "PolicyForm":
        """Say in each empty field what is in force without it."""
        self.fields["on_run_limit"].widget.choices = list(OVERRUN.items())
        for name, said in in_force.items():
            if name == "mode":
                empty = f"as everybody: {said}"
                self.fields[name].widget.choices = [("", empty), *((mode, mode) for mode in MODES)]
            else:
                self.fields[name].widget.attrs["placeholder"] = said
        return self


class ModeForm(forms.Form):
    mode = forms.ChoiceField(choices=[(mode, mode) for mode in MODES])
    reason = _reason()


class RuleForm(RuleModelForm):
    threshold = forms.FloatField(min_value=0, max_value=1e12)
    reason = _reason()

    class Meta:
        model = AlertRule
        fields = ["threshold", "enabled"]


def complaint(form: Any) -> str:
    """The first thing that is wrong, as one sentence."""
    field, errors = next(iter(form.errors.items()))
    return f"Nothing was changed. {field.replace('_', ' ').capitalize()}: {errors[0]}"
