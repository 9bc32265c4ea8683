/** `sluice diff A B`: what differs between two states, whatever each of them was read from. */
import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Condition } from '../model/conditions.ts'
import type { ObjectRef } from '../model/names.ts'
import { compareText, objectKey } from '../model/names.ts'
import { type Fold, replay } from '../replay/index.ts'
import { isLogFile, type OfflineOptions, readRecording, tellRecording } from './offline.ts'
import { exitCode, type Output, type OutputFormat, UsageError } from './output.ts'
import { objectText, placedConditions } from './status.ts'

interface StatusDifference {
  readonly object: ObjectRef
  /** Undefined where the object has no status on that side. */
  readonly before: unknown
  readonly after: unknown
}

interface Difference {
  readonly statuses: readonly StatusDifference[]
  readonly resources: {
    readonly added: readonly string[]
    readonly removed: readonly string[]
    readonly changed: readonly string[]
  }
}

/** Behind the place of a log: the position or time up to which it counts. */
const moment = /^(.+)@(\d+|\d{4}-\d\d-\d\d[^/@]*)$/

/** Manifests (`-` from standard input) or a log: a log file says itself that it is one. */
function optionsFor(place: string): OfflineOptions {
  if (place === '-') return { file: [place] }
  const found = statSync(place, { throwIfNoEntry: false })
  if (found?.isFile() && isLogFile(place)) return { logFile: place }
  if (found !== undefined) return { file: [place] }
  const [, path, at] = moment.exec(place) ?? []
  if (path !== undefined && at !== undefined) return { ...optionsFor(path), at }
  if (/^(nats|tls|wss?):\/\//.test(place)) return { nats: place }
  throw new UsageError(`${place} does not exist`)
}

interface ReadState {
  readonly fold: Fold
  /** Manifests say nothing of proxies. */
  readonly hasProxies: boolean
}

async function stateOf(place: string, output: Output): Promise<ReadState> {
  const options = optionsFor(place)
  const recording = await readRecording(options)
  const { events, extent } = recording
  const { fold } = await replay(events, recording.derivation, extent.base)
  tellRecording(recording, output, `${place}: `)
  return { fold, hasProxies: options.file === undefined }
}

/** Fields that differ between any two runs and say nothing about the state. */
const passing = new Set(['lastTransitionTime', 'observedGeneration'])

/** What is known only where proxies are. */
const ofProxies = new Set(['addresses'])
const isOfProxies = (member: unknown) => (member as Condition | null)?.type === 'Programmed'

/** A status without what says nothing here; `isBare`: without what proxies have a part in. */
function lasting(value: unknown, isBare: boolean): unknown {
  const text = JSON.stringify(value, (key, member: unknown) => {
    if (passing.has(key) || (isBare && ofProxies.has(key))) return undefined
    const isList = isBare && key === 'conditions' && Array.isArray(member)
    return isList ? member.filter((condition) => !isOfProxies(condition)) : member
  })
  return JSON.parse(text)
}

function statusDifferences(a: Fold, b: Fold, isBare: boolean): StatusDifference[] {
  const before = new Map(a.statuses().map(([ref, status]) => [objectKey(ref), { ref, status }]))
  const after = new Map(b.statuses().map(([ref, status]) => [objectKey(ref), { ref, status }]))
  const differences: StatusDifference[] = []
  for (const key of [...new Set([...before.keys(), ...after.keys()])].sort(compareText)) {
    const [old, fresh] = [before.get(key), after.get(key)]
    const object = (fresh ?? old)?.ref
    if (object === undefined) continue
    const pair = {
      before: old === undefined ? undefined : lasting(old.status, isBare),
      after: fresh === undefined ? undefined : lasting(fresh.status, isBare),
    }
    if (!isDeepStrictEqual(pair.before, pair.after)) differences.push({ object, ...pair })
  }
  return differences
}

/** Content without the order of first sight, which depends on what else was seen before. */
function contents(fold: Fold): Map<string, unknown> {
  return new Map(
    fold.resources().map(({ resource }) => {
      const {
        created: _,
        order: __,
        ...content
      } = resource as typeof resource & {
        readonly created?: number
        readonly order?: number
      }
      return [resource.key, content]
    }),
  )
}

function differenceOf(a: ReadState, b: ReadState): Difference {
  const before = contents(a.fold)
  const after = contents(b.fold)
  const sorted = (keys: Iterable<string>) => [...keys].sort(compareText)
  return {
    statuses: statusDifferences(a.fold, b.fold, a.hasProxies !== b.hasProxies),
    resources: {
      added: sorted([...after.keys()].filter((key) => !before.has(key))),
      removed: sorted([...before.keys()].filter((key) => !after.has(key))),
      changed: sorted(
        [...after].flatMap(([key, content]) =>
          before.has(key) && !isDeepStrictEqual(before.get(key), content) ? [key] : [],
        ),
      ),
    },
  }
}

/** One line for each condition and field, so that two statuses can be compared by line. */
function statusLines(status: unknown): string[] {
  if (status === undefined) return ['no status']
  const record = status as Readonly<Record<string, unknown>>
  const conditions = placedConditions(record).map(({ place, condition }) => {
    const { type, status: value, reason, message } = condition
    const text = `${type}=${value} ${reason}${message === '' ? '' : `: ${message}`}`
    return place === '' ? text : `${place}: ${text}`
  })
  const { conditions: _, parents: __, ancestors: ___, ...others } = record
  const fields = Object.entries(others).map(
    ([field, value]) => `${field}: ${JSON.stringify(value)}`,
  )
  return [...conditions, ...fields.filter((line) => !line.startsWith('listeners:'))]
}

function printText({ statuses, resources }: Difference, output: Output): void {
  for (const { object, before, after } of statuses) {
    output.print(objectText(object))
    const [old, fresh] = [statusLines(before), statusLines(after)]
    for (const line of old) if (!fresh.includes(line)) output.print(`  - ${line}`)
    for (const line of fresh) if (!old.includes(line)) output.print(`  + ${line}`)
  }
  for (const key of resources.removed) output.print(`- ${key}`)
  for (const key of resources.added) output.print(`+ ${key}`)
  for (const key of resources.changed) output.print(`~ ${key}`)
}

/** Exit code 1 where the states differ. */
export async function diff(
  a: string,
  b: string,
  format: OutputFormat,
  output: Output,
): Promise<number> {
  const difference = differenceOf(await stateOf(a, output), await stateOf(b, output))
  const { statuses, resources } = difference
  const count =
    statuses.length + resources.added.length + resources.removed.length + resources.changed.length
  if (format === 'json') output.print(JSON.stringify(difference, undefined, 2))
  else printText(difference, output)
  return count === 0 ? exitCode.fine : exitCode.no
}
