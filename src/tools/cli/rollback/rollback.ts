/**
 * `sluice rollback` and `sluice freeze` append the pin of a configuration to the log. The gateway or controller that
 * writes the log puts it in force, and it survives restarts and changes of the leader, because it is an event.
 */
import { randomUUID } from 'node:crypto'
import {
  type PinnedObject,
  type PinSetData,
  pinLifted,
  pinSet,
  type SluiceEvent,
} from '../../../../events/index.ts'
import { isHeldKind } from '../../../control/actors/pin.ts'
import type { ObjectState } from '../../../control/desired/object-state.ts'
import { hasSameContent } from '../../../control/desired/same-content.ts'
import { newEvent } from '../../../control/log/index.ts'
import {
  compareText,
  type ObjectKey,
  type ObjectRef,
  objectKey,
  objectText,
  parseObjectKey,
} from '../../../ground/model/names.ts'
import { pinText, waitingObjects, waitingText } from '../../../past/explain/pin-text.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { changeLog, inEvents, type LogPlace } from '../recording/change-log.ts'
import { parseObjectPath, suggestObjects } from '../recording/object-names.ts'
import { type OperatorChange, signed, waitForGateways } from '../recording/operator-change.ts'
import { parseTimeMs, readState, withRecording } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { lastGood } from './last-good.ts'

type Report = Output['report']

export interface FreezeOptions extends OperatorChange {
  readonly only?: readonly string[]
  readonly until?: string
}

export interface RollbackOptions extends FreezeOptions {
  /** A position, a time, or `last-good`. */
  readonly to?: string
  readonly untilChanged?: true
}

const writer = { source: '/sluice/rollback', epoch: 0 } as const
const subject = { kind: 'Desired', name: 'pin' }

/** @throws UsageError if the configuration of that moment is not known */
async function stateAt(options: RollbackOptions & { readonly to: string }, report: Report) {
  const { to } = options
  if (to !== 'last-good' && !/^\d+$/.test(to) && parseTimeMs(to) === undefined) {
    throw new UsageError(
      `--to ${to} is neither a position, a time such as 2026-01-31T12:00:00Z, nor last-good`,
    )
  }
  if (!/^\d+$/.test(to) && (parseTimeMs(to) ?? 0) > Date.now()) {
    throw new UsageError(`--to ${to} is in the future`)
  }
  const good = to === 'last-good' ? await withRecording(options, lastGood) : to
  if (good === undefined) {
    throw new UsageError('the log has no earlier configuration without a problem; name a position')
  }
  const { fold, extent } = await readState({ ...options, at: `${good}` }, report)
  if (extent.state === 'partial' || fold.position === 0) {
    throw new UsageError(
      `the log no longer has the configuration of ${to}: it begins at position ${extent.first}`,
    )
  }
  if (/^\d+$/.test(to) && fold.position < Number(to)) {
    throw new UsageError(`--to ${to} is after the end of the log, position ${fold.position}`)
  }
  return fold
}

export async function rollback(
  options: RollbackOptions & { readonly to: string },
  report: Report,
): Promise<CommandResult> {
  const about = signed(options)
  const target = await stateAt(options, report)
  return setPin({ ...options, ...about }, (now) => ({ target, now }), report)
}

export function freeze(options: FreezeOptions, report: Report): Promise<CommandResult> {
  return setPin({ ...options, ...signed(options) }, (now) => ({ target: now, now }), report)
}

/** The state to put in force, and the newest one. */
interface RollbackStates {
  readonly target: Fold
  readonly now: Fold
}

interface NewPin extends RollbackOptions {
  readonly reason: string
  readonly author: string
}

async function setPin(
  options: NewPin,
  statesFor: (now: Fold) => RollbackStates,
  report: Report,
): Promise<CommandResult> {
  const { reason, author, untilChanged } = options
  const until = endOf(options)
  let served = ''
  let waiting: ObjectRef[] = []
  const result = await changeLog(
    options,
    report,
    (now) => {
      const moments = statesFor(now)
      const only = options.only?.map((path) => named(path, moments))
      const difference = differenceOf(moments, only)
      const common = {
        to: moments.target.position,
        ...(only && { only }),
        ...(untilChanged && { untilChanged }),
        ...(until !== undefined && { until }),
        reason,
        author,
      }
      return { events: pinEvents(common, difference.objects), result: { ...difference, ...common } }
    },
    async ({ fold }, readOn) => {
      served = await waitForGateways(fold, readOn)
      waiting = [...fold.heldBack.keys()].map(parseObjectKey)
    },
  )
  const { objects, others, to, invalid } = result
  const pinned = new Set(objects.map(objectKey))
  const isPinned = (one: ObjectRef) => pinned.has(objectKey(one))
  if (others.length > 0) report(othersText(others, to))
  for (const ref of invalid) {
    report(`${objectText(ref)} had no valid version at position ${to}, and keeps its newest one`)
  }
  return {
    text: () => [
      `held at the configuration of position ${to} until ${until ?? '`sluice rollback --lift`'}; objects not at their newest version: ${waiting.length}`,
      ...objects.map((one) => `${objectText(one)}: ${changeText(one)}`),
      ...waiting
        .filter((one) => !isPinned(one))
        .map((one) => `${objectText(one)}: its newest version waits`),
      served,
    ],
    json: {
      to,
      objects: objects.map(withoutObject),
      others,
      invalid,
      until,
      reason,
      author,
      served,
    },
  }
}

/** Maximum number of objects that a message names. */
const maxNamed = 5

function othersText(others: readonly ObjectRef[], to: number): string {
  const more = others.length > maxNamed ? `, and ${others.length - maxNamed} more` : ''
  const listed = others.slice(0, maxNamed).map(objectText).join(', ')
  return `changed since position ${to}, but not rolled back: ${listed}${more}; name objects of these kinds with --only to hold them`
}

const changeText = ({ version }: PinnedObject): string =>
  version === undefined ? 'not in force' : `generation ${version.generation} in force`

const withoutObject = ({ kind, namespace, name, version }: PinnedObject) => ({
  kind,
  namespace,
  name,
  generation: version?.generation ?? null,
})

/** @throws UsageError */
function endOf({ until }: FreezeOptions): string | undefined {
  if (until === undefined) return undefined
  const timeMs = parseTimeMs(until)
  if (timeMs === undefined) {
    throw new UsageError(`--until ${until}: expected a time such as 2026-01-31T12:00:00Z`)
  }
  if (timeMs <= Date.now()) throw new UsageError(`--until ${until} is in the past`)
  return new Date(timeMs).toISOString()
}

/** @throws UsageError if neither state has the object */
function named(path: string, { target, now }: RollbackStates): ObjectRef {
  const ref = parseObjectPath(path)
  const known = [...new Set([...statesOf(target).keys(), ...newestOf(now).keys()])]
  if (known.includes(objectKey(ref))) return ref
  throw new UsageError(`--only ${path}${suggestObjects(ref, known.map(parseObjectKey))}`)
}

/** What a pin puts in force. */
interface Difference {
  readonly objects: readonly PinnedObject[]
  /** Objects of other kinds that differ, and are not held. */
  readonly others: readonly ObjectRef[]
  /** Objects that had no valid version then. */
  readonly invalid: readonly ObjectRef[]
}

/** Returns the objects that a rollback to a state pins: all that differ, or those of `only`. */
export function differenceOf(
  { target, now }: RollbackStates,
  only: readonly ObjectRef[] | undefined,
): Difference {
  const before = statesOf(target)
  const newest = newestOf(now)
  const wanted = only && new Set(only.map(objectKey))
  const objects: PinnedObject[] = []
  const others: ObjectRef[] = []
  const invalid: ObjectRef[] = []
  for (const key of [...new Set([...before.keys(), ...newest.keys()])].sort(compareText)) {
    const [old, last] = [before.get(key), newest.get(key)]
    const isSame = last?.refused === undefined && hasSameContent(old?.object, last?.object)
    if (isSame || wanted?.has(key) === false) continue
    const ref = parseObjectKey(key)
    const isHeld = wanted !== undefined || isHeldKind(ref.kind)
    const wasRefused = old !== undefined && old.object === undefined
    if (!isHeld) others.push(ref)
    else if (wasRefused) invalid.push(ref)
    else objects.push(pinnedObject(ref, old))
  }
  return { objects, others, invalid }
}

const statesOf = ({ graph }: Fold): Map<ObjectKey, ObjectState> =>
  new Map(Array.from(graph.objects(), (state) => [objectKey(state.ref), state]))

/** The newest states, also of objects of which another version is in force. */
function newestOf(fold: Fold): Map<ObjectKey, ObjectState> {
  const newest = statesOf(fold)
  for (const [key, { context }] of fold.heldBack) {
    if (context.state === undefined) newest.delete(key)
    else newest.set(key, context.state)
  }
  return newest
}

function pinnedObject(ref: ObjectRef, state: ObjectState | undefined): PinnedObject {
  if (state?.object === undefined) return ref
  const { uid, resourceVersion, generation, age, object } = state
  return { ...ref, version: { uid, resourceVersion, generation, age, object } }
}

function pinEvents(
  common: Omit<PinSetData, 'objects' | 'part'>,
  objects: readonly PinnedObject[],
): SluiceEvent[] {
  const pin = randomUUID()
  const parts = inEvents(objects, (one) => Buffer.byteLength(JSON.stringify(one)))
  return parts.map((part, at) => {
    const count = parts.length
    const place = count > 1 && { part: { pin, number: at + 1, count } }
    const data = { ...common, objects: part, ...place }
    return newEvent(pinSet, writer, subject, { id: `${pin}:${at}`, data })
  })
}

export async function lift(options: OperatorChange, report: Report): Promise<CommandResult> {
  const data = signed(options)
  let served = ''
  const held = await changeLog(
    options,
    report,
    (now) => {
      if (now.pin === undefined) throw new UsageError('nothing is held: there is no pin to lift')
      const event = newEvent(pinLifted, writer, subject, { id: randomUUID(), data })
      return { events: [event], result: [...now.heldBack.keys()].map(parseObjectKey) }
    },
    async ({ fold }, readOn) => {
      served = await waitForGateways(fold, readOn)
    },
  )
  return {
    text: () => [
      `the pin is lifted; objects that return to their newest version: ${held.length}`,
      ...held.map(objectText),
      served,
    ],
    json: { objects: held, ...data, served },
  }
}

/** What is held now. The exit code is 1 if nothing is. */
export async function shownPin(options: LogPlace, report: Report): Promise<CommandResult> {
  const { fold } = await readState(options, report)
  const { pin } = fold
  if (pin === undefined) {
    return {
      text: () => ['nothing is held: the newest configuration is in force'],
      json: { pin: null },
      exitCode: exitCode.negative,
    }
  }
  const waiting = waitingObjects(fold)
  return {
    text: () => [pinText(pin), ...waiting.map((one) => `${objectText(one)}: ${waitingText(one)}`)],
    json: { pin, waiting },
  }
}
