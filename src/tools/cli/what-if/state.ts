/** Reads the present state and the candidate state. */
import { regexProblem } from '../../../control/plane/api-binding.ts'
import { DigestKey, randomDigestKey, readKeyFile } from '../../../control/watch/digest-key.ts'
import { formatProblem, isUnreadable } from '../../../control/watch/source-problem.ts'
import { type ObjectKey, objectText, parseObjectKey } from '../../../ground/model/names.ts'
import type { VersionedResource } from '../../../ground/model/resources.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { readManifests, readState, reportProblems } from '../recording/recording.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { type CandidateState, foldCandidate } from './candidate.ts'

export interface StateOptions {
  /** Manifests of the present state. */
  readonly from?: readonly string[]
  /** A log with the present state at its end. */
  readonly logFile?: string
  readonly nats?: string
  readonly at?: string
  /** Manifests of the candidate. */
  readonly file: readonly string[]
  readonly overlay?: boolean
  /** Whether Secrets of the candidate may take values from files. The default is true. */
  readonly readsFiles?: boolean
}

export interface States extends CandidateState {
  readonly present: Fold
  /** Secret values in the manifests that were read. */
  readonly secrets: readonly VersionedResource[]
}

/** A key set that was never fetched counts as pending, since the candidate may be the first to need it. */
const derivation = { checkRegex: regexProblem, keySetsArePending: true }

/** @throws UsageError if an input is missing or unreadable */
export async function readStates(options: StateOptions, report: Output['report']): Promise<States> {
  const { from, logFile, nats, at, file, overlay = false, readsFiles } = options
  if ([from, logFile, nats].filter((input) => input !== undefined).length !== 1) {
    throw new UsageError('name the present state with exactly one of --from, --log-file and --nats')
  }
  if (from?.includes('-') && file.includes('-')) {
    throw new UsageError('only one of --from and -f can be standard input')
  }
  const known = from === undefined ? knownKey(logFile, report) : randomDigestKey()
  const digestKey = known ?? randomDigestKey()
  const source = { file: from, logFile, nats, at, digestKey }
  const { fold: present, secrets } = await readState(source, report, { derivation })
  const manifests = await readManifests(file, { digestKey, readsFiles })
  const unreadable = manifests.problems.filter(isUnreadable)
  if (unreadable.length > 0) throw new UsageError(unreadable.map(formatProblem).join('\n'))
  reportProblems(manifests, report)
  const candidate = { isOverlay: overlay, hasDigests: known !== undefined, derivation }
  const folded = foldCandidate(present, manifests, candidate)
  if (folded.assumed.length > 0) report(assumedText(folded.assumed))
  return { present, ...folded, secrets: [...secrets, ...manifests.secrets] }
}

function assumedText(keys: readonly ObjectKey[]): string {
  const objects = keys.map((key) => objectText(parseObjectKey(key))).join(', ')
  return `The digest key of the log was not found, so the secret values of these objects count as unchanged: ${objects}. Set SLUICE_DIGEST_KEY_FILE, or put the key next to the log as FILE.key.`
}

/** The key of the digests in a log, if it is on this machine. */
function knownKey(logFile: string | undefined, report: Output['report']): DigestKey | undefined {
  const path = process.env.SLUICE_DIGEST_KEY_FILE || (logFile && `${logFile}.key`)
  if (path === undefined || path === '') return undefined
  try {
    const key = readKeyFile(path)
    return key && new DigestKey(key)
  } catch (error) {
    report(`${path}: ${error instanceof Error ? error.message : String(error)}`)
    return undefined
  }
}
