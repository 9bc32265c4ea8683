/** Checks where the event log is stored: the disk of a file, or a NATS server. */
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  findStream,
  logStreams,
  openLink,
  withoutPasswords,
} from '../../../control/log/nats-connection.ts'
import { isLocked } from '../../../control/plane/file-lock.ts'
import { type Check, errorAbout, type Finding, warningAbout } from './finding.ts'

const mebibyte = 1024 * 1024
/** Free bytes: below `error`, writes may fail at any time; below `warning`, an operator should act. */
const leastFree = { error: 64 * mebibyte, warning: 1024 * mebibyte }
/** Share of a limit at which a stream is nearly full. */
const nearlyFull = 0.8

type StreamInfo = NonNullable<Awaited<ReturnType<typeof findStream>>>

const amount = (bytes: number): string => `${Math.round(bytes / mebibyte)} MiB`

export async function checkDisk(logFile: string): Promise<Omit<Check, 'name'>> {
  const { bavail, bsize } = await statfs(dirname(logFile))
  const free = bavail * bsize
  const advice = 'free space, or move the log (--log-file) to a larger disk'
  const about = free < leastFree.error ? errorAbout : warningAbout
  const findings =
    free < leastFree.warning ? [about(logFile, `its disk has ${amount(free)} left`, advice)] : []
  const notChecked = isLocked(logFile)
    ? {}
    : { notChecked: 'only the disk was checked, because no gateway runs with this log' }
  return { findings, ...notChecked }
}

/** Checks whether the server can be reached, and has room in its streams and in its account. */
export async function checkNats(servers: string): Promise<Omit<Check, 'name'>> {
  const place = withoutPasswords(servers)
  try {
    const link = await openLink({ servers, create: false, patienceMs: 5_000 })
    try {
      const streams = await Promise.all(
        Object.values(logStreams).map(({ name }) => findStream(link.manager, name)),
      )
      const { storage, limits } = await link.manager.getAccountInfo()
      return {
        findings: [
          ...streams.flatMap((stream) => (stream === undefined ? [] : streamFindings(stream))),
          ...fullness(place, 'JetStream of this account', storage, limits.max_storage),
        ],
      }
    } finally {
      await link.connection.close()
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const advice =
      'check the address, the credentials and network policies; the controller needs JetStream'
    return { findings: [errorAbout(`NATS ${place}`, message, advice)] }
  }
}

function streamFindings({ config, state, cluster }: StreamInfo): Finding[] {
  const subject = `stream ${config.name}`
  const late = (cluster?.replicas ?? []).filter(({ current }) => !current)
  return [
    ...fullness(subject, 'it', state.bytes, config.max_bytes),
    ...late.map(({ name, lag }) =>
      warningAbout(
        subject,
        `the replica ${name} is not current${lag === undefined ? '' : `: it lacks ${lag} operations`}`,
        'look at the log of this NATS server',
      ),
    ),
  ]
}

/** Returns a finding if little room is left. A limit of 0 or -1 means that there is none. */
function fullness(subject: string, what: string, used: number, limit: number): Finding[] {
  if (limit <= 0 || used < nearlyFull * limit) return []
  const about = used >= 0.95 * limit ? errorAbout : warningAbout
  const text = `${what} uses ${amount(used)} of ${amount(limit)}; a full stream takes no changes`
  return [about(subject, text, 'raise the limit, or lower SLUICE_LOG_RETENTION')]
}
