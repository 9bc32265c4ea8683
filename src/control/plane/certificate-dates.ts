/**
 * Finds certificates that are not valid now or expire soon. The fold has no clock, so conditions cannot report
 * them: the gateway logs them, and `sluice validate` prints warnings.
 */
import { X509Certificate } from 'node:crypto'
import type { SecretMetadata } from '../../../events/index.ts'
import { authoritiesEntry, pemCertificates } from '../../ground/model/certificates.ts'
import type { ObjectRef } from '../../ground/model/names.ts'
import type { ObjectState } from '../desired/object-state.ts'

/** Milliseconds since 1970. */
interface Validity {
  readonly from: number
  readonly to: number
}

export interface CertificateProblem {
  readonly ref: ObjectRef
  /** Name of the entry of the Secret or ConfigMap. */
  readonly entry: string
  readonly message: string
  /** Whether the certificate is valid now. */
  readonly isValid: boolean
}

const dayMs = 24 * 3_600_000
/** Warn this long before the end, or in the last fifth of a shorter lifetime. */
const soonMs = 14 * dayMs
const soonShare = 1 / 5

/** Problems of the certificates in a Secret or ConfigMap at a time in milliseconds since 1970. */
export function certificateProblems(state: ObjectState, now: number): CertificateProblem[] {
  return certificateEntries(state).flatMap(([entry, certificates]) => {
    const problem =
      entry === authoritiesEntry ? bundle(certificates, now) : chain(certificates, now)
    if (problem === undefined) return []
    return [{ ref: state.ref, entry, ...problem, message: `${entry} ${problem.message}` }]
  })
}

function certificateEntries({ ref, object }: ObjectState): [string, Validity[]][] {
  if (object === undefined) return []
  if (ref.kind === 'Secret') {
    const { entries = {} } = (object.facts ?? {}) as Partial<SecretMetadata>
    return Object.entries(entries).map(([name, { certificates = [] }]) => [
      name,
      certificates.flatMap((one) => (one.isValid ? [validity(one.notBefore, one.notAfter)] : [])),
    ])
  }
  if (ref.kind !== 'ConfigMap') return []
  const data = (object.data ?? {}) as Readonly<Record<string, unknown>>
  return Object.entries(data).map(([name, value]) => [
    name,
    typeof value === 'string' ? pemCertificates(value).flatMap(parse) : [],
  ])
}

const validity = (from: string, to: string): Validity => ({
  from: Date.parse(from),
  to: Date.parse(to),
})

function parse(pem: string): Validity[] {
  try {
    const { validFrom, validTo } = new X509Certificate(pem)
    return [validity(validFrom, validTo)]
  } catch {
    // A condition reports certificates that cannot be read.
    return []
  }
}

/** Every certificate of a chain must be valid. */
function chain(certificates: readonly Validity[], now: number): DateProblem | undefined {
  const [first] = certificates
  if (first === undefined) return undefined
  const latest = certificates.reduce((a, b) => (b.from > a.from ? b : a))
  const earliest = certificates.reduce((a, b) => (b.to < a.to ? b : a))
  return ended(earliest, now) ?? notBegun(latest, now) ?? endsSoon(earliest, now)
}

/** One valid authority in a bundle is enough, because bundles often keep old ones. */
function bundle(certificates: readonly Validity[], now: number): DateProblem | undefined {
  const [first] = certificates
  if (first === undefined) return undefined
  const current = certificates.filter(({ from, to }) => from <= now && now < to)
  const last = (current.length > 0 ? current : certificates).reduce((a, b) => (b.to > a.to ? b : a))
  return ended(last, now) ?? notBegun(last, now) ?? endsSoon(last, now)
}

const timeText = (ms: number): string => new Date(ms).toISOString().replace('.000Z', 'Z')

type DateProblem = Pick<CertificateProblem, 'message' | 'isValid'>

const ended = ({ to }: Validity, now: number): DateProblem | undefined =>
  to <= now ? { message: `expired at ${timeText(to)}`, isValid: false } : undefined

const notBegun = ({ from }: Validity, now: number): DateProblem | undefined =>
  from > now ? { message: `is not valid before ${timeText(from)}`, isValid: false } : undefined

function endsSoon({ from, to }: Validity, now: number): DateProblem | undefined {
  const limit = Math.min(soonMs, (to - from) * soonShare)
  return to - now < limit ? { message: `expires at ${timeText(to)}`, isValid: true } : undefined
}
