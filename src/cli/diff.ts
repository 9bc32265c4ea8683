/** `sluice diff A B`: what differs between two states, whatever each of them was read from. */
import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { ObjectRef } from '../model/names.ts'
import { compareText, objectKey } from '../model/names.ts'
import { regexProblem } from '../pipeline/regex-problem.ts'
import { type Fold, replay } from '../replay/index.ts'
import { isLogFile, type OfflineOptions, readRecording, tellExtent } from './offline.ts'
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

/** Manifests or a log: a log file says itself that it is one. */
function optionsFor(path: string): OfflineOptions {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`${path} does not exist`)
  return found.isFile() && isLogFile(path) ? { logFile: path } : { file: [path] }
}

async function stateOf(path: string, output: Output): Promise<Fold> {
  const recording = await readRecording(optionsFor(path))
  const { events, extent } = recording
  const { fold } = await replay(events, { checkRegex: regexProblem }, extent.base)
  tellExtent(recording, output, `${path}: `)
  return fold
}

/** Fields that differ between any two runs and say nothing about the state. */
const passing = new Set(['lastTransitionTime', 'observedGeneration'])

function lasting(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, member) => (passing.has(key) ? undefined : member)))
}

function statusDifferences(a: Fold, b: Fold): StatusDifference[] {
  const before = new Map(a.statuses().map(([ref, status]) => [objectKey(ref), { ref, status }]))
  const after = new Map(b.statuses().map(([ref, status]) => [objectKey(ref), { ref, status }]))
  const differences: StatusDifference[] = []
  for (const key of [...new Set([...before.keys(), ...after.keys()])].sort(compareText)) {
    const [old, fresh] = [before.get(key), after.get(key)]
    const object = (fresh ?? old)?.ref
    if (object === undefined) continue
    const pair = {
      before: old === undefined ? undefined : lasting(old.status),
      after: fresh === undefined ? undefined : lasting(fresh.status),
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

function differenceOf(a: Fold, b: Fold): Difference {
  const before = contents(a)
  const after = contents(b)
  const sorted = (keys: Iterable<string>) => [...keys].sort(compareText)
  return {
    statuses: statusDifferences(a, b),
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
