/** `sluice diff A B` compares two states, each read from manifests or from a log. */
import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Condition } from '../model/conditions.ts'
import {
  compareText,
  type ObjectKey,
  objectKey,
  objectText,
  parseObjectKey,
} from '../model/names.ts'
import type { Fold } from '../replay/index.ts'
import { placedConditions } from './conditions.ts'
import { type Answer, exitCode, type Output, UsageError } from './output.ts'
import { isLogFile, type RecordingOptions, readState } from './recording.ts'

/** Matches `LOG@POSITION` and `LOG@TIME`: the log is read up to that position or time. */
const logUpTo = /^(.+)@(\d+|\d{4}-\d\d-\d\d[^/@]*)$/

/** Returns how to read a state: from manifests (`-` is standard input), or from a log, by its first bytes. */
function optionsFor(location: string): RecordingOptions {
  if (location === '-') return { file: [location] }
  const found = statSync(location, { throwIfNoEntry: false })
  if (found?.isFile() && isLogFile(location)) return { logFile: location }
  if (found !== undefined) return { file: [location] }
  const [, path, at] = logUpTo.exec(location) ?? []
  if (path !== undefined && at !== undefined) return { ...optionsFor(path), at }
  if (/^(nats|tls|wss?):\/\//.test(location)) return { nats: location }
  throw new UsageError(`${location} does not exist`)
}

/** Status fields that differ from run to run. */
const volatileFields = new Set(['lastTransitionTime', 'observedGeneration'])

/** Status fields that depend on running proxies. */
const proxyFields = new Set(['addresses'])
/** Returns true for conditions that depend on running proxies. */
const isProxyCondition = (member: unknown) => (member as Condition | null)?.type === 'Programmed'

/** Copies a status without volatile fields and, if `withoutProxies` is set, without proxy-dependent parts. */
function comparable(status: unknown, withoutProxies: boolean): unknown {
  const text = JSON.stringify(status, (key, member: unknown) => {
    if (volatileFields.has(key) || (withoutProxies && proxyFields.has(key))) return undefined
    const isList = withoutProxies && key === 'conditions' && Array.isArray(member)
    return isList ? member.filter((condition) => !isProxyCondition(condition)) : member
  })
  return JSON.parse(text)
}

const statusesOf = (fold: Fold, withoutProxies: boolean): Map<ObjectKey, unknown> =>
  new Map(
    fold
      .statuses()
      .map(([ref, status]) => [objectKey(ref), comparable(status, withoutProxies)] as const),
  )

/** Resources by key, without their age, which depends on what else was observed before. */
function resourcesOf(fold: Fold): Map<string, unknown> {
  return new Map(
    fold.resources().map(({ resource }) => {
      return [resource.key, { ...resource, created: undefined, order: undefined }]
    }),
  )
}

/** A status or resource that differs between two states. */
interface Difference {
  readonly key: string
  /** Undefined if the key was added. */
  readonly before: unknown
  /** Undefined if the key was removed. */
  readonly after: unknown
}

function differences(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
): Difference[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .sort(compareText)
    .map((key) => ({ key, before: before.get(key), after: after.get(key) }))
    .filter((pair) => !isDeepStrictEqual(pair.before, pair.after))
}

const conditionFields = new Set(['conditions', 'parents', 'ancestors', 'listeners'])

/** Formats a status as one line per condition and field, so that statuses can be compared line by line. */
function statusLines(status: unknown): string[] {
  if (status === undefined) return ['no status']
  const conditions = placedConditions(status).map(({ place, condition }) => {
    const { type, status: value, reason, message } = condition
    const text = `${type}=${value} ${reason}${message === '' ? '' : `: ${message}`}`
    return place === '' ? text : `${place}: ${text}`
  })
  const fields = Object.entries(status as object)
    .filter(([field]) => !conditionFields.has(field))
    .map(([field, value]) => `${field}: ${JSON.stringify(value)}`)
  return [...conditions, ...fields]
}

function statusText({ key, before, after }: Difference): string[] {
  const [old, fresh] = [statusLines(before), statusLines(after)]
  return [
    objectText(parseObjectKey(key)),
    ...old.filter((line) => !fresh.includes(line)).map((line) => `  - ${line}`),
    ...fresh.filter((line) => !old.includes(line)).map((line) => `  + ${line}`),
  ]
}

export interface StateDifferences {
  /** Statuses by the keys of their objects. */
  readonly statuses: readonly Difference[]
  /** Keys of resources. */
  readonly resources: {
    readonly added: readonly string[]
    readonly removed: readonly string[]
    readonly changed: readonly string[]
  }
}

/** Compares two states; `withoutProxies` ignores the parts of statuses that depend on running proxies. */
export function compareStates(old: Fold, fresh: Fold, withoutProxies: boolean): StateDifferences {
  const resources = differences(resourcesOf(old), resourcesOf(fresh))
  const changeOf = ({ before, after }: Difference) =>
    before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
  const keysOf = (change: string) =>
    resources.filter((one) => changeOf(one) === change).map(({ key }) => key)
  return {
    statuses: differences(statusesOf(old, withoutProxies), statusesOf(fresh, withoutProxies)),
    resources: { added: keysOf('added'), removed: keysOf('removed'), changed: keysOf('changed') },
  }
}

/** The exit code is 1 if the states differ. */
export async function diff(a: string, b: string, report: Output['report']): Promise<Answer> {
  const [from, to] = [optionsFor(a), optionsFor(b)]
  const { fold: old } = await readState(from, report, { name: `${a}: ` })
  const { fold: fresh } = await readState(to, report, { name: `${b}: ` })
  // Manifests contain no proxies, so comparing them with a log ignores what depends on proxies.
  const withoutProxies = (from.file === undefined) !== (to.file === undefined)
  const { statuses, resources } = compareStates(old, fresh, withoutProxies)
  const { added, removed, changed } = resources
  const isSame = [statuses, added, removed, changed].every(({ length }) => length === 0)
  return {
    text: () => [
      ...statuses.flatMap(statusText),
      ...removed.map((key) => `- ${key}`),
      ...added.map((key) => `+ ${key}`),
      ...changed.map((key) => `~ ${key}`),
    ],
    json: {
      statuses: statuses.map(({ key, ...pair }) => ({ object: parseObjectKey(key), ...pair })),
      resources,
    },
    exitCode: isSame ? exitCode.success : exitCode.negative,
  }
}
