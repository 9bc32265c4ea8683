/**
 * `sluice approve` and `sluice reject` decide about changes that `changeProtection` holds. The decision is an event in
 * the log.
 */
import { randomUUID } from 'node:crypto'
import {
  type ChangedRequests,
  changeApproved,
  changeRejected,
  type SluiceEvent,
} from '../../../../events/index.ts'
import type { HeldChange } from '../../../control/actors/protected-changes.ts'
import { newEvent } from '../../../control/log/index.ts'
import {
  type ObjectKey,
  type ObjectRef,
  objectText,
  parseObjectKey,
} from '../../../ground/model/names.ts'
import {
  heldChanges,
  objectsThatWait,
  type WaitingChange,
} from '../../../past/explain/held-changes.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { changeLog, type LogPlace } from '../recording/change-log.ts'
import { type OperatorChange, signed, waitForGateways } from '../recording/operator-change.ts'
import { readState } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'

type Report = Output['report']

export interface ApproveOptions extends OperatorChange {
  /** Position of the held change; omitted with `emergency`. */
  readonly position?: string
  readonly emergency?: true
}

const writer = { source: '/sluice/approve', epoch: 0 } as const
const subject = { kind: 'Desired', name: 'change' }

export async function approve(options: ApproveOptions, report: Report): Promise<CommandResult> {
  const { emergency, position } = options
  const about = signed(options)
  let served = ''
  const result = await changeLog(
    options,
    report,
    (fold) => {
      const held = emergency === true ? undefined : changeAt(fold, position).position
      const delivered = emergency === true ? deliveredIn(fold) : []
      const objects = [...waitingIn(fold, held), ...delivered.map(parseObjectKey)]
      if (objects.length === 0) throw new UsageError('nothing waits: all changes are in force')
      const data = { ...(emergency ? { emergency } : { held }), ...about }
      const event = newEvent(changeApproved, writer, subject, { id: randomUUID(), data })
      return { events: [event as SluiceEvent], result: { objects, held } }
    },
    async ({ fold }, readOn) => {
      served = await waitForGateways(fold, readOn)
    },
  )
  const { objects, held } = result
  const what =
    held === undefined ? 'everything that waited takes effect' : `change ${held} takes effect`
  return {
    text: () => [`${what}; objects: ${objects.length}`, ...objects.map(objectText), served],
    json: { held: held ?? null, objects, ...about, served },
  }
}

/** Returns the objects that wait in rollouts, without those that were rolled back. */
const deliveredIn = ({ rollouts }: Fold): ObjectKey[] =>
  [...rollouts.waiting].flatMap(([key, { rollout = 0 }]) =>
    rollouts.rollouts.get(rollout)?.value === 'rolledBack' ? [] : [key],
  )

export async function reject(options: ApproveOptions, report: Report): Promise<CommandResult> {
  const about = signed(options)
  const { objects, held } = await changeLog(options, report, (fold) => {
    const { position } = changeAt(fold, options.position)
    const data = { held: position, ...about }
    const event = newEvent(changeRejected, writer, subject, { id: randomUUID(), data })
    return {
      events: [event as SluiceEvent],
      result: { objects: waitingIn(fold, position), held: position },
    }
  })
  return {
    text: () => [
      `change ${held} is rejected; it waits until its manifests change again`,
      ...objects.map(objectText),
    ],
    json: { held, objects, ...about },
  }
}

/** @throws UsageError if no change is held at the position, or it was rejected */
function changeAt({ changes }: Fold, position: string | undefined): HeldChange {
  if (position === undefined) {
    throw new UsageError('name the position of the change (`sluice approve` lists it)')
  }
  const change = changes.held.get(Number(position))
  if (change === undefined) {
    const known = [...changes.held.keys()]
    const hint = known.length === 0 ? 'no change is held' : `held are: ${known.join(', ')}`
    throw new UsageError(
      `no change is held at position ${position} (${hint}). A newer version may have replaced it`,
    )
  }
  if (change.rejected !== undefined) {
    throw new UsageError(`change ${position} was rejected by ${change.rejected.author}`)
  }
  return change
}

/** The objects of a held change, or all that wait. */
const waitingIn = (fold: Fold, held: number | undefined): ObjectRef[] =>
  objectsThatWait(fold, (one) => held === undefined || one === held)

/** What waits now. The exit code is 1 if nothing does. */
export async function shownChanges(options: LogPlace, report: Report): Promise<CommandResult> {
  const { fold } = await readState(options, report)
  const held = heldChanges(fold)
  const unjudged = objectsThatWait(fold, (position) => position === undefined)
  const isNothing = held.length + unjudged.length === 0
  return {
    text: () => [
      ...(isNothing ? ['nothing waits: all changes are in force'] : held.flatMap(heldLines)),
      ...(unjudged.length === 0 ? [] : ['not judged yet:', ...unjudged.map(indented)]),
    ],
    json: { held, unjudged },
    ...(isNothing && { exitCode: exitCode.negative }),
  }
}

const indented = (ref: ObjectRef): string => `  ${objectText(ref)}`

function heldLines({
  position,
  since,
  objects,
  unmet,
  groups,
  sample,
  rejected,
}: WaitingChange): string[] {
  const { limits } = sample
  return [
    `change ${position}, held since ${since}`,
    ...objects.map(indented),
    ...unmet.map(({ condition, message }) => `  ${condition}: ${message}`),
    ...groups.flatMap(groupLines),
    ...(limits === undefined ? [] : [`  not shown: ${limits}`]),
    rejected === undefined
      ? `  approve it with: sluice approve ${position} --reason …`
      : `  rejected by ${rejected.author} (${rejected.reason})`,
  ]
}

function groupLines({ from, to, count, cause, examples }: ChangedRequests): string[] {
  const requests = count === 1 ? '1 request' : `${count} requests`
  return [
    `  ${from} → ${to}, ${requests}, because ${cause}`,
    ...examples.map((one) => `    ${one}`),
  ]
}
