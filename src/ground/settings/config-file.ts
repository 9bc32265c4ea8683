/**
 * The configuration file of a proxy. Its `config` provides settings that neither flags nor the environment
 * set. The name of a setting is that of its flag, or of its variable without `SLUICE_`, in camel case;
 * `logging.level` and `logging.format` are additional names.
 */
import { isObject, type JsonObject } from '../base/json-object.ts'
import type { SettingProblem, SettingRow } from './table.ts'

/** Values of settings, by environment variable. */
export interface SettingTexts {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Location in the file of each setting that came from a file, by environment variable. */
  readonly sources: Readonly<Record<string, string>>
}

interface FileSettings {
  /** Settings as texts, by environment variable. */
  readonly values: Readonly<Record<string, string>>
  /** Location of each setting in the file, by environment variable. */
  readonly sources: Readonly<Record<string, string>>
  readonly problems: readonly SettingProblem[]
  /** Paths of fields that are not settings. */
  readonly unknown: readonly string[]
}

type Row = Pick<SettingRow<unknown>, 'flag' | 'env'>

/** The name of a setting in the file: `bindAddress` for `--bind-address`. */
export function fileName({ flag, env }: Row): string {
  const words = (flag ?? env.replace(/^SLUICE_/, '').toLowerCase()).split(/[-_]/)
  return words
    .map((word, at) => (at === 0 ? word : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('')
}

const logVariables: Readonly<Record<string, readonly string[]>> = {
  level: ['RUST_LOG'],
  format: ['SLUICE_LOG_FORMAT', 'LOG_FORMAT'],
}

function textOf(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    const parts = value.map(textOf)
    return parts.includes(undefined) ? undefined : parts.join(',')
  }
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined
}

/** Reads settings from the parsed content of the file; `path` is used in messages. */
export function settingsOfFile(content: unknown, rows: readonly Row[], path: string): FileSettings {
  const values: Record<string, string> = {}
  const sources: Record<string, string> = {}
  const problems: SettingProblem[] = []
  const unknown: string[] = []
  const fieldsOf = (value: unknown, source: string): JsonObject => {
    if (isObject(value)) return value
    if (value !== undefined && value !== null) {
      problems.push({ source, message: 'expected an object' })
    }
    return {}
  }
  const read = (field: string, value: unknown, variables: readonly string[] | undefined): void => {
    const text = textOf(value)
    if (variables === undefined) unknown.push(field)
    else if (text !== undefined) {
      for (const variable of variables) {
        values[variable] ??= text
        sources[variable] ??= `${path}: ${field}`
      }
    } else if (value !== null) {
      const message = 'expected a string, a number or a list'
      problems.push({ source: `${path}: ${field}`, message })
    }
  }
  const { config, ...otherFields } = fieldsOf(content, path)
  unknown.push(...Object.keys(otherFields))
  const { logging: log, ...fields } = fieldsOf(config, `${path}: config`)
  const known = new Map(rows.map((row) => [fileName(row), [row.env]]))
  for (const [name, value] of Object.entries(fields)) read(`config.${name}`, value, known.get(name))
  for (const [name, value] of Object.entries(fieldsOf(log, `${path}: config.logging`))) {
    read(
      `config.logging.${name}`,
      value,
      Object.hasOwn(logVariables, name) ? logVariables[name] : undefined,
    )
  }
  return { values, sources, problems, unknown }
}
