/** Opens the log that a run uses, and prevents other processes on this machine from writing to it. */
import { hash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { DamagedEventError, type UnknownEventTypeError } from '../../../events/index.ts'
import { makeFolder } from '../../ground/base/make-folder.ts'
import { type HeartbeatOptions, natsHeartbeats } from '../lease/heartbeat.ts'
import { isExport } from '../log/export.ts'
import {
  type EventLog,
  LogError,
  MemoryLog,
  noteDamage,
  type OverflowListener,
  openEmbeddedLog,
} from '../log/index.ts'
import { type DigestKey, openDigestKey, randomDigestKey } from '../watch/digest-key.ts'
import { LockedError, takeFileLock } from './file-lock.ts'
import { LogPresence, lossNotice } from './log-presence.ts'

export interface SharedLog {
  readonly openHeartbeats: HeartbeatOptions['openEntries']
  /** Addresses of NATS servers. */
  readonly servers: string
  /** Name of this replica. */
  readonly replica: string
}

type NotifyLog = (severity: 'info' | 'warn' | 'error', text: string) => void

export interface OpenedLog {
  readonly log: EventLog
  readonly digestKey: DigestKey
  /** Path of the file or address of the server; undefined if the log is in memory. */
  readonly path: string | undefined
  /** Notices for the user, such as a damaged file that was moved aside. */
  readonly notices: readonly string[]
  /** Set if other processes write to the same log. */
  readonly shared?: SharedLog
  /** Has the log moved aside when it is opened the next time. Only for a log in a file. */
  readonly discard?: (reason: string) => void
  /** Reports if the log is lost, continues in memory, or is stored again. Only for a log in a file. */
  readonly watch?: (notify: NotifyLog) => void
  /** Opens the log of the ledger of budgets, which is beside this one. Called once, if there is a budget. */
  readonly openLedger: () => Promise<EventLog>
  /** Closes the log, which other processes can open then. */
  close(): Promise<void>
}

/**
 * The folder of the user's state, with a folder for each set of manifests. A variable that is empty or a relative path
 * counts as not set (XDG Base Directory Specification 0.8).
 */
export function stateFolder(): string {
  const home = process.env.XDG_STATE_HOME ?? ''
  return join(isAbsolute(home) ? home : join(homedir(), '.local', 'state'), 'sluice')
}

/** The default path of a log: one per set of manifests, below the user's state folder. */
export function defaultLogPath(paths: readonly string[]): string {
  const identity = JSON.stringify(paths.map((path) => resolve(path)).sort())
  const name = hash('sha256', identity).slice(0, 16)
  return join(stateFolder(), name, 'events.db')
}

/** Joins the lines of a message, since those of SQLite have several. */
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim()

function memoryLog(notices: readonly string[], digestKey = randomDigestKey()): OpenedLog {
  const log = new MemoryLog()
  const openLedger = async () => new MemoryLog()
  return { log, digestKey, path: undefined, notices, openLedger, close: () => log.close() }
}

/** Names of text files, which must not be moved aside as a damaged log. */
const textName = /\.(ya?ml|json|jsonl|txt|md)$/i

/** @throws LogError if the path is a manifest or an export, mistaken for a log */
function assertNoText(path: string): void {
  const found = orUnwritable(path, () => statSync(path, { throwIfNoEntry: false }))
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

/**
 * Opens a log while this process holds the lock of a file. Closing the log releases the lock.
 * @throws LockedError, LogError, or the system's error if the file cannot be written
 */
async function openLocked(
  path: string,
  open: () => OpenedLog | Promise<OpenedLog>,
): Promise<OpenedLog> {
  const unlock = lockOf(path)
  try {
    const opened = await open()
    return { ...opened, close: () => opened.close().then(unlock) }
  } catch (error) {
    unlock()
    throw error
  }
}

/** @throws LockedError, LogError */
function lockOf(path: string): () => void {
  return orUnwritable(path, () => {
    makeFolder(dirname(path), 0o700)
    return takeFileLock(path)
  })
}

/** @throws LockedError, or LogError if the system refuses the work */
function orUnwritable<Result>(path: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof LockedError) throw error
    const why = oneLine(error instanceof Error ? error.message : String(error))
    throw new LogError('unwritable', `${path} cannot be written: ${why}`, { cause: error })
  }
}

/** How often a log in a file is searched for events of other processes. */
const pollMs = 250

function fileLog(path: string, digestKey?: DigestKey): Promise<OpenedLog> {
  assertNoText(path)
  return openLocked(path, async () => {
    const lost = lossNotice(path)
    const overflow = new OverflowNotices(path)
    const { log, movedAside } = openEmbeddedLog(path, overflow)
    const key = digestKey ?? (await keyBeside(path, log))
    const presence = new LogPresence(path)
    const ofLoss = lost === undefined ? [] : [lost]
    const notices =
      movedAside === undefined
        ? ofLoss
        : [
            ...ofLoss,
            `${path} was damaged (${oneLine(movedAside.reason)}) and is now ${movedAside.path}; history before now is lost, the manifests are listed again`,
          ]
    const discard = (reason: string) => noteDamage(path, reason)
    const watch = (notify: NotifyLog) => {
      overflow.notify = notify
      presence.watch((text) => notify('error', text))
    }
    const openLedger = async () => openEmbeddedLog(`${path}.ledger`).log
    // Reading the last position lets tails continue with events of other processes (`sluice keys --dynamic`).
    const polling = setInterval(
      () => void log.lastPosition().catch(() => undefined),
      pollMs,
    ).unref()
    const close = () => {
      clearInterval(polling)
      return log.close().then(() => presence.close())
    }
    return { log, digestKey: key, path, notices, discard, watch, openLedger, close }
  })
}

/** The key of secret digests in the file next to a log, which is closed if there is no place for that file. */
async function keyBeside(path: string, log: EventLog): Promise<DigestKey> {
  try {
    return orUnwritable(path, () => openDigestKey(`${path}.key`))
  } catch (error) {
    await log.close()
    throw error
  }
}

/** Reports when a log in a file continues in memory, and when the file has its events again. */
class OverflowNotices implements OverflowListener {
  readonly #path: string
  notify: NotifyLog = () => undefined

  constructor(path: string) {
    this.#path = path
  }

  began(reason: string): void {
    const what = `Event log continues in memory: ${oneLine(reason)}`
    this.notify('warn', `${what}. Free disk space, or these events are lost with the process.`)
  }

  ended(): void {
    this.notify('info', `${this.#path} has all events of the log again`)
  }
}

/** Bytes that a log needs to be opened. */
const neededBytes = 256 * 1024

/** Whether a log could not be opened because the disk is full. */
function isDiskFull(path: string): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    try {
      const { bavail, blocks, bsize } = statfsSync(folder)
      return blocks > 0 && bavail * bsize < neededBytes
    } catch {
      if (folder === dirname(folder)) return false
    }
  }
}

/** The log that `--log-file` names; if the disk is full, a log in memory, so that traffic is served. */
async function namedLog(path: string, digestKey: DigestKey | undefined): Promise<OpenedLog> {
  try {
    return await fileLog(path, digestKey)
  } catch (error) {
    const mayPass =
      error instanceof LogError && (error.code === 'storage' || error.code === 'unwritable')
    if (!mayPass || !isDiskFull(path)) throw error
    const notice = `the disk of ${path} is full: the log is kept in memory only; free space and restart`
    return memoryLog([notice], digestKey)
  }
}

/** Whether an error means that stored events are damaged. */
export const isDamage = (error: unknown): error is Error =>
  error instanceof DamagedEventError || (error instanceof LogError && error.code === 'corrupt')

/**
 * Opens the log on a NATS server. Without `keyFile`, the key of secret digests stays on this machine, in the
 * folder of the default log of these manifests. A second process on this machine with the same manifests is
 * refused; a lease decides which machine writes.
 */
async function natsLog(
  paths: readonly string[],
  servers: string,
  keyFile: string | undefined,
): Promise<OpenedLog> {
  const { openNatsLog, withoutPasswords } = await import('../log/nats.ts')
  const local = join(dirname(defaultLogPath(paths)), 'nats')
  return openLocked(local, async () => {
    const log = await openNatsLog({ servers })
    const digestKey = openDigestKey(keyFile ?? `${local}.key`)
    const openHeartbeats = natsHeartbeats(servers)
    const shared = { servers, openHeartbeats, replica: replicaName(`${local}.name`) }
    const path = withoutPasswords(servers)
    const openLedger = () => openNatsLog({ servers, log: 'ledger' })
    return { log, digestKey, path, notices: [], shared, openLedger, close: () => log.close() }
  })
}

/** Reads the stored name of this replica, or creates it, so that a restarted replica is recognized. */
function replicaName(path: string): string {
  if (existsSync(path)) {
    const known = readFileSync(path, 'utf8').trim()
    if (/^[a-z0-9-]{1,253}$/.test(known)) return known
  }
  const fresh = `local-${randomBytes(4).toString('hex')}`
  writeFileSync(path, `${fresh}\n`, { mode: 0o600 })
  return fresh
}

export interface OpenLogOptions {
  readonly logFile?: string
  readonly ephemeral?: boolean
  /** Address of a NATS server. */
  readonly nats?: string
  /** File with the key of secret digests, which all gateways on one NATS server share. */
  readonly digestKeyFile?: string
  /** Key of secret digests for a log in a file. If omitted, it is read from a file next to the log. */
  readonly digestKey?: DigestKey
}

/**
 * Opens the log that `nats` or `logFile` names, or throws. Without either, opens the log at the default path;
 * if that is locked or cannot be written, keeps the log in memory and returns a notice. So does a log file whose
 * disk is full.
 */
export async function openLog(
  paths: readonly string[],
  options: OpenLogOptions,
): Promise<OpenedLog> {
  if (options.ephemeral === true) return memoryLog([])
  if (options.nats !== undefined) return natsLog(paths, options.nats, options.digestKeyFile)
  const { digestKey } = options
  if (options.logFile !== undefined) return namedLog(resolve(options.logFile), digestKey)
  try {
    return await fileLog(defaultLogPath(paths), digestKey)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return memoryLog([`the log is kept in memory only: ${reason}`])
  }
}

/** What to log about an event of a newer version, at which this replica stops reading. */
export const tooNewText = ({ message }: UnknownEventTypeError): string =>
  `${message}. Serving the last configuration; upgrade this replica to resume updates.`
