/**
 * `sluice stdio` runs MCP servers that are commands. It runs beside a proxy, in another container of its pod, or as a
 * child of `sluice run`: then its first input is the token, it reports on standard output, and ends with its input.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { StdioHost } from '../../../gateway/stdio/host.ts'
import { describeIsolation, findIsolation } from '../../../gateway/stdio/isolation.ts'
import type { WriteLog } from '../../../gateway/stdio/server-log.ts'
import { loopbackAddress, processUser } from '../../../ground/settings/types.ts'
import { OperationalLog } from '../shared/operational-log.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { handleSignals } from '../shared/signals.ts'
import { packageVersion } from '../shared/version.ts'

export interface StdioOptions {
  readonly address: string
  readonly tokenFile?: string
  readonly user?: string
}

/** Runs until a signal, or the end of its input; resolves to the exit code. */
export async function stdio(options: StdioOptions, output: Output): Promise<number> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const { address, tokenFile } = options
  if (loopbackAddress.read(address) === undefined) {
    throw new UsageError(`--address ${address}: expected ${loopbackAddress.form}`)
  }
  const user = userOf(options.user)
  const log = new OperationalLog(output)
  handleSignals(end, log)
  const isChild = tokenFile === undefined
  const write: WriteLog = isChild
    ? (severity, text) => output.print(JSON.stringify({ severity, text }))
    : (severity, text) => log.write(severity, text)
  const token = isChild ? await firstLine(end) : randomBytes(32).toString('hex')
  const isolation = findIsolation(user)
  if (!isChild) {
    const { inForce, missing } = describeIsolation(isolation)
    write('info', inForce)
    for (const text of missing) write('warn', text)
  }
  const parts = { isolation, user, version: packageVersion(), log: write }
  const host = new StdioHost({ ...parts, address, token })
  const bound = await host.start()
  if (isChild) output.print(JSON.stringify({ address: bound }))
  else writeToken(tokenFile, token)
  await ended
  await host.close()
  return exitCode.success
}

/** Resolves to the first line of the input; `onEnd` is called when the input ends. */
async function firstLine(onEnd: () => void): Promise<string> {
  const lines = createInterface({ input: process.stdin })
  lines.once('close', onEnd)
  const [line] = (await once(lines, 'line')) as [string]
  return line
}

/** The file appears whole, and only this user can read it. */
function writeToken(path: string, token: string): void {
  writeFileSync(`${path}.new`, token, { mode: 0o600 })
  renameSync(`${path}.new`, path)
}

function userOf(text: string | undefined) {
  if (text === undefined) return undefined
  const user = processUser.read(text)
  if (user !== undefined) return user
  throw new UsageError(`--user ${text}: expected ${processUser.form}`)
}
