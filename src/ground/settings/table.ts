/** A table of settings. Each row is a flag, an environment variable and a line of docs/settings.md. */
import { failAll, type Outcome, succeed } from '../base/outcome.ts'
import type { SettingType } from './types.ts'

export interface SettingProblem {
  /** The flag, variable or file position that the value came from. */
  readonly source: string
  readonly message: string
}

interface RowOptions {
  /** Name of the flag without the leading dashes; omitted if the setting has no flag. */
  readonly flag?: string
  readonly env: string
  /** How the docs describe the default, if not by its value. */
  readonly defaultText?: string
  readonly doc: string
}

export interface SettingRow<Value> extends SettingType<Value>, RowOptions {
  readonly default: Value
  readonly isRequired?: true
}

/** Creates a setting with a default, or, if `default` is omitted, one that is undefined by default. */
export function row<Value>(
  type: SettingType<Value>,
  options: RowOptions & { readonly default: NoInfer<Value> },
): SettingRow<Value>
export function row<Value>(
  type: SettingType<Value>,
  options: RowOptions,
): SettingRow<Value | undefined>
export function row<Value>(
  type: SettingType<Value>,
  options: RowOptions & { readonly default?: Value },
): SettingRow<Value | undefined> {
  const defaultText = options.default === undefined ? 'none' : undefined
  return { ...type, defaultText, default: undefined, ...options }
}

/** Creates a setting without a default: reading fails if neither a flag nor the environment provides it. */
export function requiredRow<Value>(
  type: SettingType<Value>,
  options: RowOptions & { readonly flag: string },
): SettingRow<Value> {
  const defaultText = 'none; required'
  return { ...type, ...options, defaultText, isRequired: true, default: undefined as Value }
}

type Table = Readonly<Record<string, SettingRow<unknown>>>

export type ValuesOf<Rows extends Table> = {
  readonly [Name in keyof Rows]: Rows[Name] extends SettingRow<infer Value> ? Value : never
}

/**
 * Reads every setting of a table and returns all problems at once. A flag overrides the environment, which
 * overrides the default; an empty variable counts as not set.
 * @param flags texts given on the command line, by the name of the setting
 * @param sources origin of each variable that was not set in the environment, such as a file
 */
export function readTable<Rows extends Table>(
  table: Rows,
  flags: Partial<Record<keyof Rows, string>>,
  env: Readonly<Record<string, string | undefined>>,
  sources: Readonly<Record<string, string>> = {},
): Outcome<ValuesOf<Rows>, SettingProblem> {
  const values: Record<string, unknown> = {}
  const problems: SettingProblem[] = []
  for (const [name, setting] of Object.entries(table)) {
    const flag = flags[name]
    const text = flag ?? (env[setting.env] || undefined)
    values[name] = text === undefined ? setting.default : setting.read(text)
    if (values[name] !== undefined) continue
    if (text !== undefined) {
      const source =
        flag === undefined ? (sources[setting.env] ?? setting.env) : `--${setting.flag}`
      problems.push({ source, message: `${shownOf(setting, text)} is not ${setting.form}` })
    } else if (setting.isRequired) {
      const message = `is required (or ${setting.env}): ${setting.form}`
      problems.push({ source: `--${setting.flag}`, message })
    }
  }
  return problems.length > 0 ? failAll(problems) : succeed(values as ValuesOf<Rows>)
}

const shownOf = ({ isSecret }: SettingType<unknown>, text: string): string =>
  isSecret === true ? 'the value' : JSON.stringify(text)
