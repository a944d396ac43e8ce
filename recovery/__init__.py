"""The watch and the operator's pages: who is dead, what it held, what was done about it, and what a person may do.

In the order in which data passes: `lookout` sees who is dead, `sweep` ends them and takes what they held, `rescues`
writes the Recovery row inside that transaction and settles it later from the diary. `checking` says what it thinks of a
workflow, `planning` what it would do, `case` and `sanitizing` the same in the words of seed 3. `acts` does what an
operator asks, `rescuing` where that is a recovery, `sweeping` where it is a sweep, `batches` where it is about many, and
`auditing` writes it down. `incidents` gathers recoveries by the death that caused them. `duties` are the scheduled tasks:
besides the sweep `wake` looks for what is overdue, `alerts` compares figures with the thresholds of `rules`, `retention`
forgets. `schedules` keeps them in django-q2, `starting_up` runs them as a cluster starts, `standby` has a worker run what is
overdue, within `bounds`; each leaves a `tally`. `metrics` defines every figure once, `late` answers what was late and what
is stuck (`questions` on the command line); the pages read and draw.
`verdict` says in `sentences` why a workflow is (not) moving and what is wrong with Rekindle itself; `attention` and `strips` only
choose what to show of it. Of one workflow `timeline` draws its life, `panel` tells a step,
`buttons` and `asking` say what may be done and what would come of it; `redacting` hides what is not for everybody.
`chaos` breaks things on purpose and judges what is left; in the demo `killing` breaks a worker at the press of a button, and `demo` begins it from an empty page.
"""
