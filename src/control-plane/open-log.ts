/** Which log a run uses, and the guarantee that no other process writes to it. */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { LockedError, takeFileLock } from '../base/file-lock.ts'
import { makeFolder } from '../base/make-folder.ts'
import { isExport } from '../log/export.ts'
import { type EventLog, LogError, MemoryLog, openEmbeddedLog } from '../log/index.ts'
import { type DigestKey, openDigestKey, randomDigestKey } from '../watch/digest-key.ts'

export interface SharedLog {
  /** Addresses of NATS servers. */
  readonly servers: string
  /** Name of this replica. */
  readonly replica: string
}

export interface OpenedLog {
  readonly log: EventLog
  readonly digestKey: DigestKey
  /** Where it is kept, a path or the address of a server; undefined in memory. */
  readonly path: string | undefined
  /** What the user should know, such as a damaged file that was moved aside. */
  readonly notices: readonly string[]
  /** Set if other processes write to the same log. */
  readonly shared?: SharedLog
  /** Closes the log and lets other processes have it. */
  close(): Promise<void>
}

/** The log of a run without --log-file: one per set of manifests, below the user's state folder. */
export function defaultLogPath(paths: readonly string[]): string {
  const state = process.env.XDG_STATE_HOME ?? join(homedir(), '.local', 'state')
  const identity = JSON.stringify(paths.map((path) => resolve(path)).sort())
  const name = createHash('sha256').update(identity).digest('hex').slice(0, 16)
  return join(state, 'sluice', name, 'events.db')
}

/** SQLite reports several lines. */
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

function memoryLog(notices: readonly string[]): OpenedLog {
  const log = new MemoryLog()
  const close = () => log.close()
  return { log, digestKey: randomDigestKey(), path: undefined, notices, close }
}

/** Files of the user's that would be moved aside as a damaged log. */
const textName = /\.(ya?ml|json|jsonl|txt|md)$/i

/** @throws LogError if the path is a manifest or an export: mistaken for a log, not a damaged one. */
function assertNoText(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || !found.isFile() || found.size === 0) return
  if (isExport(path)) {
    const use = 'sluice replay, status and explain read it'
    throw new LogError(
      'foreign',
      `${path} is an export of a log, which cannot be continued; ${use}`,
    )
  }
  if (textName.test(path)) throw new LogError('foreign', `${path} is not a log; it is left alone`)
}

/** The lock of a file that is to be written. @throws LockedError, LogError */
function lockOf(path: string): () => void {
  try {
    makeFolder(dirname(path), 0o700)
    return takeFileLock(path)
  } catch (error) {
    if (error instanceof LockedError) throw error
    const why = oneLine(error instanceof Error ? error.message : String(error))
    throw new LogError('unwritable', `${path} cannot be written: ${why}`, { cause: error })
  }
}

/** @throws LockedError, LogError, or the system's error where the place cannot be written. */
function fileLog(path: string, digestKey?: DigestKey): OpenedLog {
  assertNoText(path)
  const unlock = lockOf(path)
  try {
    const { log, movedAside } = openEmbeddedLog(path)
    const notices =
      movedAside === undefined
        ? []
        : [
            `${path} was damaged (${oneLine(movedAside.reason)}) and is now ${movedAside.path}; history before now is lost, the manifests are listed again`,
          ]
    const close = async () => {
      await log.close()
      unlock()
    }
    return { log, digestKey: digestKey ?? openDigestKey(`${path}.key`), path, notices, close }
  } catch (error) {
    unlock()
    throw error
  }
}

/**
 * The log on a NATS server. The key of secret digests stays on this machine, beside where a log of
 * the same manifests would be, and a second process on them is refused here too; with those on other
 * machines a lease settles which one writes.
 * @throws LockedError, LogError, or the system's error where the place cannot be written.
 */
async function natsLog(
  paths: readonly string[],
  servers: string,
  keyFile: string | undefined,
): Promise<OpenedLog> {
  const { openNatsLog, placeOf } = await import('../log/nats.ts')
  const local = join(dirname(defaultLogPath(paths)), 'nats')
  const unlock = lockOf(local)
  try {
    const log = await openNatsLog({ servers: servers.split(',') })
    const close = async () => {
      await log.close()
      unlock()
    }
    const digestKey = openDigestKey(keyFile ?? `${local}.key`)
    const shared = { servers, replica: replicaName(`${local}.name`) }
    const path = servers.split(',').map(placeOf).join(',')
    return { log, digestKey, path, notices: [], shared, close }
  } catch (error) {
    unlock()
    throw error
  }
}

/** Made once and kept, so that a restart is known to be the same replica. */
function replicaName(path: string): string {
  if (existsSync(path)) {
    const known = readFileSync(path, 'utf8').trim()
    if (/^[a-z0-9-]{1,253}$/.test(known)) return known
  }
  const fresh = `local-${randomBytes(4).toString('hex')}`
  writeFileSync(path, `${fresh}\n`, { mode: 0o600 })
  return fresh
}

export interface LogOptions {
  readonly logFile?: string
  readonly ephemeral?: boolean
  /** Address of a NATS server. */
  readonly nats?: string
  /** The key of secret digests of gateways that share a log there; one beside the log otherwise. */
  readonly digestKeyFile?: string
  /** In place of the one beside a log in a file. */
  readonly digestKey?: DigestKey
}

/**
 * `logFile` or `nats` given: that one, or an error. Otherwise the default place, and memory (with a
 * notice) where that is taken or cannot be written.
 */
export async function openLog(paths: readonly string[], options: LogOptions): Promise<OpenedLog> {
  if (options.ephemeral === true) return memoryLog([])
  if (options.nats !== undefined) return natsLog(paths, options.nats, options.digestKeyFile)
  const { digestKey } = options
  if (options.logFile !== undefined) return fileLog(resolve(options.logFile), digestKey)
  try {
    return fileLog(defaultLogPath(paths), digestKey)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return memoryLog([`the log is kept in memory only: ${reason}`])
  }
}
