/** Where the settings of `sluice proxy` come from beside its flags: the environment, over a file. */
import { readFileSync } from 'node:fs'
import { type SettingTexts, settingsOfFile } from '../settings/config-file.ts'
import { remoteSettings, settings } from '../settings/index.ts'
import type { OperationalLog } from './operational-log.ts'
import { UsageError } from './output.ts'
import { usageProblems } from './traffic.ts'

async function readContent(path: string): Promise<unknown> {
  // Most proxies have no such file, and the parser takes memory.
  const { parse } = await import('yaml')
  try {
    return parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
    throw new UsageError(`--config: ${path} cannot be read: ${reason}`)
  }
}

/** An empty variable counts as unset. @throws UsageError where the file cannot be read */
export async function settingTexts(
  path: string | undefined,
  log: OperationalLog,
): Promise<SettingTexts> {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, text]) => text !== ''))
  if (path === undefined) return { env: given, sources: {} }
  const rows = Object.values({ ...settings, ...remoteSettings })
  const file = settingsOfFile(await readContent(path), rows, path)
  if (file.problems.length > 0) throw usageProblems(file.problems)
  for (const field of file.unknown) log.write('warn', `${path}: ${field}: no such setting; ignored`)
  return { env: { ...file.values, ...given }, sources: file.sources }
}
