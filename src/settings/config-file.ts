/**
 * The configuration file of a proxy: what is under `config` sets settings by name, where neither a
 * flag nor the environment does. The name of a setting is that of its flag, or of its variable
 * without `SLUICE_`, in camel case; `logging.level` and `logging.format` are there too.
 */
import type { SettingProblem, SettingRow } from './row.ts'

/** Texts by variable, and where those are from that are not of the environment. */
export interface SettingTexts {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly sources: Readonly<Record<string, string>>
}

interface FileSettings {
  /** Texts by environment variable. */
  readonly values: Readonly<Record<string, string>>
  /** Environment variable -> where in the file its text is from. */
  readonly sources: Readonly<Record<string, string>>
  readonly problems: readonly SettingProblem[]
  /** Fields that mean nothing here. */
  readonly unknown: readonly string[]
}

type Row = Pick<SettingRow<unknown>, 'flag' | 'env'>

/** The name of a setting in the file. */
export function fileName({ flag, env }: Row): string {
  const words = (flag ?? env.replace(/^SLUICE_/, '').toLowerCase()).split(/[-_]/)
  return words
    .map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('')
}

/** Where the file says how much is told, and in what form. */
const logging: Readonly<Record<string, readonly string[]>> = {
  level: ['RUST_LOG'],
  format: ['SLUICE_LOG_FORMAT', 'LOG_FORMAT'],
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const parts = value.map(textOf)
    return parts.includes(undefined) ? undefined : parts.join(',')
  }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : undefined
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Takes the parsed content of the file; `path` is for messages. */
export function settingsOfFile(content: unknown, rows: readonly Row[], path: string): FileSettings {
  const values: Record<string, string> = {}
  const sources: Record<string, string> = {}
  const problems: SettingProblem[] = []
  const unknown: string[] = []
  const known = new Map(rows.map((row) => [fileName(row), [row.env]]))
  const take = (field: string, value: unknown, variables: readonly string[] | undefined): void => {
    if (variables === undefined) {
      unknown.push(field)
      return
    }
    if (value === null) return
    const text = textOf(value)
    if (text === undefined) {
      problems.push({
        source: `${path}: ${field}`,
        message: 'a text, a number or a list is wanted',
      })
      return
    }
    for (const variable of variables) {
      values[variable] ??= text
      sources[variable] ??= `${path}: ${field}`
    }
  }
  const { config, ...others } = mapAt(content, '', path, problems)
  unknown.push(...Object.keys(others))
  const { logging: log, ...fields } = mapAt(config, 'config', path, problems)
  for (const [name, value] of Object.entries(fields)) take(`config.${name}`, value, known.get(name))
  for (const [name, value] of Object.entries(mapAt(log, 'config.logging', path, problems))) {
    take(`config.logging.${name}`, value, Object.hasOwn(logging, name) ? logging[name] : undefined)
  }
  return { values, sources, problems, unknown }
}

function mapAt(
  value: unknown,
  field: string,
  path: string,
  problems: SettingProblem[],
): Readonly<Record<string, unknown>> {
  if (isMap(value)) return value
  if (value !== undefined && value !== null) {
    const source = field === '' ? path : `${path}: ${field}`
    problems.push({ source, message: 'a map is wanted' })
  }
  return {}
}
