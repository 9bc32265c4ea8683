/** `sluice explain`: why an object is as it is: conditions, events, what was read, what it gave. */
import type { SluiceEvent } from '../../events/index.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { type ObjectRef, objectKey } from '../model/names.ts'
import type { VersionedResource } from '../model/resources.ts'
import { type Fold, replay } from '../replay/index.ts'
import { eventDetail, shortType } from './event-text.ts'
import { type OfflineOptions, readRecording, tellRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, table, UsageError } from './output.ts'
import { objectText, placedConditions } from './status.ts'

interface ExplainedEvent {
  readonly position: number
  readonly time: string
  readonly type: string
  readonly detail: string
}

interface ReadDependency {
  /** The derivation that read it. */
  readonly stage: string
  /** Such as `object:Service/default/app`. */
  readonly key: string
  /** For what can be shown in few words: is it there? */
  readonly state: string
}

interface Explanation {
  readonly object: ObjectRef
  readonly generation: number | undefined
  readonly refused: ObjectState['refused']
  readonly status: unknown
  readonly events: readonly ExplainedEvent[]
  readonly reads: readonly ReadDependency[]
  readonly resources: readonly VersionedResource[]
}

/** `[KIND, NAMESPACE/NAME]`, or just a name for what has no namespace; the kind in any case. */
function parseObject(kind: string, name: string, fold: Fold): ObjectRef {
  const parts = name.split('/')
  if (parts.length > 2 || parts.includes('')) {
    throw new UsageError(`${name} is not NAMESPACE/NAME`)
  }
  const [first = '', second] = parts
  const namespaces = second === undefined ? ['', 'default'] : [first]
  const known = [...fold.graph.objects()].map(({ ref }) => ref)
  const isMeant = (ref: ObjectRef) =>
    ref.kind.toLowerCase() === kind.toLowerCase() &&
    ref.name === (second ?? first) &&
    namespaces.includes(ref.namespace)
  return known.find(isMeant) ?? { kind, namespace: namespaces.at(-1) ?? '', name: second ?? first }
}

/** Is the event about the object, or about something that a proxy refuses of it? */
function isAbout(ref: ObjectRef, { type, data }: SluiceEvent): boolean {
  if (type === 'dev.sluice.config.rejected.v1') {
    const key = objectKey(ref)
    if (data.key === `stream/${key}`) return true
    return ['listener', 'route'].some((kind) => data.key.startsWith(`${kind}/${key}/`))
  }
  const { kind, namespace, name } = data as Partial<ObjectRef>
  return kind === ref.kind && namespace === ref.namespace && name === ref.name
}

/** What stands behind a key that a derivation has read. */
function stateOf(key: string, fold: Fold): string {
  const [what = '', ...rest] = key.split(':')
  const about = rest.join(':')
  if (what !== 'object') return ''
  const state = fold.graph.object(about)
  if (state === undefined) return 'does not exist'
  return state.object === undefined ? 'has no valid version' : `generation ${state.generation}`
}

/** `index:grants\0shared` -> `index:grants shared`. */
const readable = (key: string): string => key.replace('\0', ' ')

function explanationOf(ref: ObjectRef, fold: Fold, events: readonly ExplainedEvent[]): Explanation {
  const state = fold.graph.object(objectKey(ref))
  const derivations = fold.graph.derivationsOf(ref)
  const keys = new Set(derivations.flatMap(({ resources }) => resources))
  const ownListeners = `listener/${objectKey(ref)}/`
  return {
    object: ref,
    generation: state?.object === undefined ? undefined : state.generation,
    refused: state?.refused,
    status: fold.statusOf(ref),
    events,
    reads: derivations.flatMap(({ stage, reads }) =>
      reads.map((key) => ({ stage, key: readable(key), state: stateOf(key, fold) })),
    ),
    // Entries of a ListenerSet are derived with their Gateway.
    resources: fold
      .resources()
      .filter(({ resource: { key } }) => keys.has(key) || key.startsWith(ownListeners)),
  }
}

function section(title: string, rows: readonly (readonly string[])[]): string {
  return `\n${title}\n${rows.length === 0 ? '  none' : table(rows.map(([first = '', ...more]) => [`  ${first}`, ...more]))}`
}

function printText(explanation: Explanation, output: Output): void {
  const { object, generation, refused, status, events, reads, resources } = explanation
  const version = generation === undefined ? 'not in force' : `generation ${generation} in force`
  output.print(`${objectText(object)}: ${version}`)
  for (const { path, message } of refused?.problems ?? []) {
    output.print(`  refused: generation ${refused?.generation}: ${path}: ${message}`)
  }
  const conditions = placedConditions((status ?? {}) as Readonly<Record<string, unknown>>)
  output.print(
    section(
      'Conditions',
      conditions.map(({ place, condition }) => [
        place === '' ? 'object' : place,
        condition.type,
        condition.status,
        condition.reason,
        `since ${condition.lastTransitionTime}`,
        condition.message,
      ]),
    ),
  )
  output.print(
    section(
      'Events',
      events.map(({ position, time, type, detail }) => [String(position), time, type, detail]),
    ),
  )
  output.print(
    section(
      'Read by its derivations',
      reads.map(({ stage, key, state }) => [stage, key, state]),
    ),
  )
  output.print(
    section(
      'Resources for the proxy',
      resources.map(({ resource, version: hash }) => [resource.key, hash]),
    ),
  )
}

/** Exit code 1 where nothing is known of the object. */
export async function explain(
  kind: string,
  name: string,
  options: OfflineOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const recording = await readRecording(options)
  const { events: recorded, extent } = recording
  const { fold } = await replay(recorded, recording.derivation, extent.base)
  tellRecording(recording, output)
  const ref = parseObject(kind, name, fold)
  const events = recorded
    .filter(({ event }) => isAbout(ref, event))
    .map(({ position, event }) => ({
      position,
      time: event.time,
      type: shortType(event.type),
      detail: eventDetail(event),
    }))
  const explanation = explanationOf(ref, fold, events)
  if (events.length === 0 && explanation.generation === undefined) {
    output.report(`nothing is known of ${objectText(ref)}`)
    return exitCode.no
  }
  if (format === 'json') output.print(JSON.stringify(explanation, undefined, 2))
  else printText(explanation, output)
  return exitCode.fine
}
