/** `sluice status` prints the conditions of every object and the state of every proxy. */

import { formatProblem, type SourceProblem } from '../../../control/watch/source-problem.ts'
import { objectText } from '../../../ground/model/names.ts'
import { placedConditions } from '../../../ground/model/placed-conditions.ts'
import { type Fold, foldVersion } from '../../../past/replay/index.ts'
import { FieldPlaces } from '../recording/field-places.ts'
import {
  foldRecording,
  type RecordingOptions,
  readRecording,
  readState,
} from '../recording/recording.ts'
import { withUnaskedProxies } from '../recording/unasked-proxies.ts'
import { unresolvedReferences } from '../recording/unresolved-references.ts'
import { type CommandResult, exitCode, type Output, table, UsageError } from '../shared/output.ts'

const statusHeader = ['OBJECT', 'PLACE', 'CONDITION', 'STATUS', 'REASON', 'MESSAGE']

type Statuses = ReturnType<Fold['statuses']>

function statusRows(statuses: Statuses): string[][] {
  return statuses.flatMap(([ref, status]) =>
    placedConditions(status).map(({ place, condition }) => {
      const { type, status: value, reason, message } = condition
      return [objectText(ref), place, type, value, reason, message]
    }),
  )
}

const proxyHeader = [
  'PROXY',
  'GATEWAY',
  'REPLICA',
  'ADDRESS',
  'VERSION',
  'STATE',
  'IN FORCE',
  'REFUSED',
]

/** A row for each proxy in the log: where it is connected, and which configuration it has applied. */
function proxyRows(fold: Fold): string[][] {
  return fold
    .proxies()
    .map(({ proxy, gateway, replica, address, version, state, watermark, rejections }) => [
      proxy,
      gateway ?? 'all',
      replica ?? '',
      address ?? '',
      version ?? '',
      state,
      watermark < 0 ? '' : String(watermark),
      String(Object.keys(rejections).length),
    ])
}

/** Object versions that were refused, with the reasons. */
function refusals(fold: Fold) {
  return [...fold.graph.objects()].flatMap(({ ref, refused }) =>
    refused === undefined ? [] : [{ ...ref, problems: refused.problems }],
  )
}

function statusText(fold: Fold, statuses: Statuses): string[] {
  const proxies = proxyRows(fold)
  return [
    table([statusHeader, ...statusRows(statuses)]),
    ...(proxies.length === 0 ? [] : [`\n${table([proxyHeader, ...proxies])}`]),
    ...refusals(fold).flatMap(({ problems, ...ref }) =>
      problems.map(({ path, message }) => `refused: ${objectText(ref)}: ${path}: ${message}`),
    ),
  ]
}

/** The parts of a warning that JSON output shows. */
function warningOf({ severity: _, reason: _reason, ...warning }: SourceProblem) {
  return warning
}

export interface StatusOptions extends RecordingOptions {
  /** Exits with 1 if a reference leads to an object that the manifests do not define. */
  readonly strict?: boolean
}

async function readStatus(options: StatusOptions, report: Output['report']) {
  if (options.file === undefined) return { ...(await readState(options, report)), warnings: [] }
  const places = new FieldPlaces()
  const recording = await readRecording({ ...options, places }, report)
  const fold = await foldRecording(recording)
  const warnings = unresolvedReferences(recording, fold, places)
  return { fold, extent: recording.extent, warnings }
}

/** Manifests are also checked for unresolved references. A log records what exists, so it is not. */
export async function status(
  options: StatusOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const { strict = false, file } = options
  if (strict && file === undefined) throw new UsageError('--strict needs manifests (-f)')
  const { fold, extent, warnings } = await readStatus(options, report)
  for (const warning of warnings) report(formatProblem(warning))
  const statuses = () =>
    file === undefined
      ? fold.statuses()
      : fold.statuses().map(([ref, decided]) => [ref, withUnaskedProxies(decided)] as const)
  return {
    text: () => statusText(fold, statuses()),
    // Hashing the whole state takes a good part of the command's time, and the text does not show the digests.
    get json() {
      return {
        objects: statuses().map(([ref, decided]) => ({ ...ref, status: decided })),
        refused: refusals(fold),
        proxies: fold.proxies(),
        digests: fold.digests(),
        foldVersion,
        history: { state: extent.state, first: extent.first },
        ...(file !== undefined && { warnings: warnings.map(warningOf) }),
      }
    },
    exitCode: strict && warnings.length > 0 ? exitCode.negative : exitCode.success,
  }
}
