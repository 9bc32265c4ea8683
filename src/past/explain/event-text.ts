/** Formats events as short texts for people. */
import type { SluiceEvent, UnmetCondition } from '../../../events/index.ts'
import { keySetText } from '../../ground/model/key-sets.ts'
import { type ObjectRef, objectText } from '../../ground/model/names.ts'

type EventData<Type> = Extract<SluiceEvent, { readonly type: Type }>['data']

/** Functions that format the details of an event, without its type and object, by event type. */
const details: {
  readonly [Type in SluiceEvent['type']]?: (data: EventData<Type>) => string
} = {
  'dev.sluice.resource.applied.v1': ({ generation }) => `generation ${generation}`,
  'dev.sluice.resource.deleted.v1': ({ cause }) => cause,
  'dev.sluice.resource.refused.v1': ({ problems }) =>
    problems.map(({ path, message }) => `${path}: ${message}`).join('; '),
  'dev.sluice.relist.finished.v1': ({ count }) => `${count} objects`,
  'dev.sluice.desired.published.v1': ({ digest, upserted, removed }) =>
    `digest ${digest}, +${upserted} -${removed}`,
  'dev.sluice.deployment.applied.v1': ({ changes }) =>
    changes.map(({ kind, name, change }) => `${kind} ${name} ${change}`).join(', '),
  'dev.sluice.deployment.failed.v1': ({ message }) => message,
  'dev.sluice.definitions.observed.v1': ({ versions }) => versions.join(', '),
  'dev.sluice.jwks.fetched.v1': ({ uri }) => keySetText(uri),
  'dev.sluice.document.fetched.v1': ({ uri, document: { problem } }) =>
    typeof problem === 'string' ? `${keySetText(uri)}: ${problem}` : keySetText(uri),
  'dev.sluice.proxy.connected.v1': ({ proxy, gateway, replica }) => {
    const served = gateway === undefined ? '' : ` of Gateway ${gateway}`
    return `proxy ${proxy}${served}${replica === undefined ? '' : `, at replica ${replica}`}`
  },
  'dev.sluice.proxy.disconnected.v1': ({ proxy, reason }) => `proxy ${proxy}: ${reason}`,
  'dev.sluice.config.acked.v1': ({ proxy, sequence, refused = [] }) => {
    const except = refused.length === 0 ? '' : `, except ${refused.length} rejected resources`
    return `proxy ${proxy}, in force up to ${sequence}${except}`
  },
  'dev.sluice.config.rejected.v1': ({ proxy, key, message }) =>
    `proxy ${proxy}, ${key}: ${message}`,
  'dev.sluice.pin.set.v1': ({ to, objects, author, reason }) =>
    `position ${to}, ${objects.length} objects (${author}: ${reason})`,
  'dev.sluice.pin.lifted.v1': ({ author, reason }) => `${author}: ${reason}`,
  'dev.sluice.protection.set.v1': ({ mode }) => `mode ${mode}`,
  'dev.sluice.change.passed.v1': ({ changes, unmet = [] }) =>
    `${changes.flat().map(objectText).join(', ')}${unmet.length === 0 ? '' : `, although ${unmetText(unmet)}`}`,
  'dev.sluice.change.held.v1': ({ objects, unmet }) =>
    `${objects.map(objectText).join(', ')}: ${unmetText(unmet)}`,
  'dev.sluice.change.approved.v1': ({ held, author, reason }) =>
    `${held === undefined ? 'everything that waits, in an emergency' : `change ${held}`} (${author}: ${reason})`,
  'dev.sluice.change.rejected.v1': ({ held, author, reason }) =>
    `change ${held} (${author}: ${reason})`,
  'dev.sluice.rollout.started.v1': ({ objects, plans }) =>
    `${objects.map(objectText).join(', ')}, at ${plans.map(({ gateway }) => gateway).join(', ')}`,
  'dev.sluice.rollout.skipped.v1': ({ objects }) => objects.map(objectText).join(', '),
  'dev.sluice.rollout.stepped.v1': ({ rollout, step, proxies }) =>
    `rollout ${rollout}, step ${step}: ${proxies.join(', ')}`,
  'dev.sluice.rollout.paused.v1': ({ rollout, author, reason }) =>
    `rollout ${rollout} (${author ?? 'gateway'}: ${reason})`,
  'dev.sluice.rollout.resumed.v1': ({ rollout, author, reason }) =>
    `rollout ${rollout} (${author}: ${reason})`,
  'dev.sluice.rollout.ended.v1': ({ rollout, outcome, author, reason }) =>
    `rollout ${rollout}, ${outcome} (${author ?? 'gateway'}: ${reason})`,
  'dev.sluice.timer.fired.v1': ({ timer }) => timerText(timer),
  'dev.sluice.lease.acquired.v1': ({ holder, epoch }) => `${holder}, epoch ${epoch}`,
  'dev.sluice.lease.lost.v1': ({ holder, epoch }) => `${holder}, epoch ${epoch}`,
  'dev.sluice.digest.taken.v1': ({ replica, position }) =>
    `replica ${replica} at position ${position}`,
  'dev.sluice.digest.differed.v1': ({ replica, other, position }) =>
    `replicas ${replica} and ${other} at position ${position}`,
}

const unmetText = (unmet: readonly UnmetCondition[]): string =>
  unmet.map(({ message }) => message).join('; ')

export function eventDetail({ type, data }: SluiceEvent): string {
  const detail = details[type] as ((data: SluiceEvent['data']) => string) | undefined
  return detail?.(data) ?? ''
}

/** Describes a timer by its name: `silent:` and a proxy, `absent:` and a Gateway, or `pin:` and a position. */
function timerText(timer: string): string {
  const [, event, name] = /^(silent|absent|pin):(.*)$/s.exec(timer) ?? []
  if (event === 'silent') return `proxy ${name} has not answered for too long`
  if (event === 'absent') return `Gateway ${name} has had no proxy for too long`
  if (event === 'pin') return `the pin that was set by event ${name} has expired`
  return timer
}

/** Shortens `dev.sluice.resource.applied.v1` to `resource.applied`. */
export function shortType(type: string): string {
  return type.replace(/^dev\.sluice\./, '').replace(/\.v[0-9]+$/, '')
}

/** Formats an event as the cause of a change: `resource.applied HTTPRoute default/app, generation 2`. */
export function causeText(event: SluiceEvent): string {
  const object = subjectText(event)
  const detail = eventDetail(event)
  const subject = object === undefined ? '' : ` ${object}`
  return `${shortType(event.type)}${subject}${detail === '' ? '' : `, ${detail}`}`
}

/** The object that an event names, such as `HTTPRoute default/app`; undefined if it names none. */
export function subjectText({ data }: SluiceEvent): string | undefined {
  const { kind, namespace = '', name } = data as Partial<ObjectRef>
  if (kind === undefined || name === undefined) return undefined
  return objectText({ kind, namespace, name })
}
