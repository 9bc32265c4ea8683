/** One setting: a command-line option, an environment variable, a line of docs/settings.md. */

export interface SettingProblem {
  /** The flag or variable that the value came from. */
  readonly source: string
  readonly message: string
}

export interface SettingRow<Value> {
  /** Without the leading dashes; absent where only the environment sets it. */
  readonly flag?: string
  readonly env: string
  /** What a value looks like, for the docs and for the message that refuses one. */
  readonly form: string
  /** Several, with commas between: given twice, the option means all of them. */
  readonly isList?: true
  /** Undefined where the text is not of that form. */
  readonly read: (text: string) => Value | undefined
  readonly default: Value
  /** How the default reads in the docs, where it is not the value itself. */
  readonly defaultText?: string
  readonly doc: string
}

export const row = <Value>(setting: SettingRow<Value>): SettingRow<Value> => setting
