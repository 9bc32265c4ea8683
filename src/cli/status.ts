/** `sluice status`: conditions of every object, as the fold decides them. */
import type { Condition, DecidedCondition } from '../model/conditions.ts'
import type { ObjectRef } from '../model/names.ts'
import { type Fold, foldVersion, replay } from '../replay/index.ts'
import { type OfflineOptions, readRecording, tellRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, table, UsageError } from './output.ts'

/** Where a condition stands in a status: the object itself, or one of its lists. */
interface PlacedCondition {
  readonly place: string
  /** The same as a path: `status.listeners[http]`. */
  readonly path: string
  readonly condition: Condition & Pick<DecidedCondition, 'own'>
}

type Json = Readonly<Record<string, unknown>>

const lists: readonly (readonly [field: string, what: string, nameOf: (entry: Json) => string])[] =
  [
    ['listeners', 'listener', ({ name }) => String(name)],
    ['parents', 'parent', ({ parentRef }) => refText(parentRef)],
    ['ancestors', 'ancestor', ({ ancestorRef }) => refText(ancestorRef)],
  ]

/** Of two references to different parents the texts differ: conditions are told apart by them. */
function refText(ref: unknown): string {
  const { kind = '', namespace, name = '', sectionName, port } = (ref ?? {}) as ParentText
  const path = namespace === undefined ? name : `${namespace}/${name}`
  const section = sectionName === undefined ? '' : `#${sectionName}`
  return `${kind} ${path}${section}${port === undefined ? '' : `:${port}`}`.trim()
}

interface ParentText {
  readonly kind?: string
  readonly namespace?: string
  readonly name?: string
  readonly sectionName?: string
  readonly port?: number
}

export function placedConditions(status: Json): PlacedCondition[] {
  const at = (place: string, path: string, holder: Json): PlacedCondition[] =>
    ((holder.conditions ?? []) as Condition[]).map((condition) => ({ place, path, condition }))
  const nested = lists.flatMap(([field, what, nameOf]) =>
    ((status[field] ?? []) as Json[]).flatMap((entry) => {
      const name = nameOf(entry)
      return at(`${what} ${name}`, `status.${field}[${name}]`, entry)
    }),
  )
  return [...at('', 'status', status), ...nested]
}

function statusRows(fold: Fold): string[][] {
  return fold
    .statuses()
    .flatMap(([ref, status]) =>
      placedConditions(status).map(({ place, condition }) => [
        objectText(ref),
        place,
        condition.type,
        condition.status,
        condition.reason,
        condition.message,
      ]),
    )
}

export function objectText({ kind, namespace, name }: ObjectRef): string {
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

/**
 * `KIND/NAMESPACE/NAME`; with two parts the namespace is `default`, or none for kinds without.
 * @throws UsageError
 */
export function parseObjectPath(path: string): ObjectRef {
  const [kind = '', ...rest] = path.split('/')
  const [first, second] = rest
  if (kind === '' || !first || rest.length > 2 || second === '') {
    throw new UsageError(`${path} is not KIND/NAMESPACE/NAME`)
  }
  if (second !== undefined) return { kind, namespace: first, name: second }
  const namespace = clusterKinds.has(kind) ? '' : 'default'
  return { kind, namespace, name: first }
}

const clusterKinds = new Set(['GatewayClass', 'Namespace'])

/** Proxies as the log knows them: where each is connected, and how far it has come. */
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

/** Versions of objects that were refused, and why. */
function refusals(fold: Fold) {
  return [...fold.graph.objects()].flatMap(({ ref, refused }) =>
    refused === undefined ? [] : [{ ...ref, problems: refused.problems }],
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

export async function status(
  options: OfflineOptions,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const recording = await readRecording(options)
  const { events, extent } = recording
  const { fold } = await replay(events, recording.derivation, extent.base)
  tellRecording(recording, output)
  const refused = refusals(fold)
  if (format === 'json') {
    const objects = fold.statuses().map(([ref, decided]) => ({ ...ref, status: decided }))
    const digests = fold.digests()
    const proxies = fold.proxies()
    const { state, first } = extent
    const history = { state, first }
    const all = { objects, refused, proxies, digests, foldVersion, history }
    const text = JSON.stringify(all, undefined, 2)
    output.print(text)
    return exitCode.fine
  }
  const header = ['OBJECT', 'PLACE', 'CONDITION', 'STATUS', 'REASON', 'MESSAGE']
  output.print(table([header, ...statusRows(fold)]))
  const proxies = proxyRows(fold)
  if (proxies.length > 0) output.print(`\n${table([proxyHeader, ...proxies])}`)
  for (const { problems, ...ref } of refused) {
    for (const { path, message } of problems) {
      output.print(`refused: ${objectText(ref)}: ${path}: ${message}`)
    }
  }
  return exitCode.fine
}
