/** How commands read settings from flags, the environment and a file. */
import type { Outcome } from '../../../ground/base/outcome.ts'
import { readWholeFile } from '../../../ground/base/read-whole-file.ts'
import { type SettingTexts, settingsOfFile } from '../../../ground/settings/config-file.ts'
import { settings } from '../../../ground/settings/index.ts'
import { remoteSettings } from '../../../ground/settings/remote.ts'
import type { SettingProblem } from '../../../ground/settings/table.ts'
import type { OperationalLog } from './operational-log.ts'
import { UsageError } from './output.ts'

/** Returns the values of settings. @throws UsageError with a line for each problem */
export function valuesOf<Values>(read: Outcome<Values, SettingProblem>): Values {
  if (read.ok) return read.value
  const problems = read.problems.map(({ source, message }) => `${source}: ${message}`)
  throw new UsageError(problems.join('\n'))
}

async function parseFile(path: string): Promise<unknown> {
  // The YAML parser takes memory, and most proxies have no such file, so it is loaded only when needed.
  const { parse } = await import('./parse-yaml.ts')
  try {
    return parse(readWholeFile(path))
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    throw new UsageError(`--config: ${path} cannot be read: ${reason}`)
  }
}

/**
 * Reads settings from the environment and, for those that it does not set, from a file. An empty variable
 * counts as not set.
 * @throws UsageError if the file cannot be read or has wrong values
 */
export async function settingTexts(
  path: string | undefined,
  log: OperationalLog,
): Promise<SettingTexts> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([, text]) => text !== ''))
  if (path === undefined) return { env, sources: {} }
  const rows = Object.values({ ...settings, ...remoteSettings })
  const { values, sources, problems, unknown } = settingsOfFile(await parseFile(path), rows, path)
  valuesOf<unknown>({ ok: problems.length === 0, value: values, problems })
  for (const field of unknown) log.write('warn', `${path}: ${field}: no such setting; ignored`)
  return { env: { ...values, ...env }, sources }
}
