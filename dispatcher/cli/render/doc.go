// Package render holds the rules by which every command writes, whether it talks to a dispatcher or starts a fleet. They are
// told to people in docs/output.md.
//
//   - The result goes to the standard output, everything else to the standard error: steps, progress, notes, errors.
//   - -o json writes the result as it is stored and sent: one object on one line, of a list one on each line, of an empty list
//     nothing. [WriteJSON] escapes what could steer a terminal where the output is one.
//   - -o text is for people. A [Table] fits in a terminal by cutting prose, never what one copies; elsewhere it is whole.
//     Lengths of time, counts and money are those of [Span], [Took] and [Count].
//   - Texts of models, tools and other people reach a terminal through [Visible], [VisibleLines] or [VisibleJSON] alone.
//   - Colors, and lines that are written over, are for terminals. NO_COLOR takes the colors away, TERM=dumb both.
//   - An error is one line that says what to do next: [Explain], [Worded], [OneLine]. A mistake in calling a command is a
//     [UsageError], a run that ended badly a [RunFailed], a person's Ctrl-C an [Interrupted]; each has its own exit code.
package render
