/**
 * Reads which client wrote which status from the audit log of the API server. Unlike a watch, it
 * includes refused writes and writes that changed nothing.
 */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { canonicalJson } from '../../src/ground/base/canonical.ts'
import { allConditions, type Status } from '../support/gateway.ts'

interface AuditEvent {
  readonly verb: string
  readonly stageTimestamp: string
  readonly user: { readonly username: string }
  readonly objectRef: {
    readonly resource: string
    readonly name: string
    readonly subresource?: string
  }
  readonly responseStatus?: { readonly code: number; readonly message?: string }
  readonly responseObject?: {
    readonly metadata?: {
      readonly uid: string
      readonly resourceVersion: string
      readonly generation: number
    }
    readonly status?: Status
  }
}

/** A write of a status that the server was asked for. */
export interface StatusWrite {
  readonly by: string
  readonly at: number
  /** Such as `httproutes/r-1`. */
  readonly object: string
  readonly code: number
  /** The message of a refused write. */
  readonly message: string
  readonly uid: string
  readonly version: string
  readonly generation: number
  /** Without transition times. */
  readonly status: Status
}

/** The problems with the writes of a run, as text; empty if there are none. */
export interface WriteVerdict {
  readonly writes: number
  readonly conflicts: number
  readonly refused: readonly string[]
  /** Written twice for the same change, or with no change at all. */
  readonly repeated: readonly string[]
  /** Conditions that went one way and back within one generation of an object. */
  readonly flaps: readonly string[]
}

/** Reads what was recorded from a place of the file on. */
export function auditSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

function readFrom(path: string, from: number): string {
  const size = auditSize(path)
  if (size <= from) return ''
  const bytes = Buffer.alloc(size - from)
  const file = openSync(path, 'r')
  readSync(file, bytes, 0, bytes.length, from)
  closeSync(file)
  return bytes.toString('utf8')
}

export function statusWrites(path: string, from: number): StatusWrite[] {
  const lines = readFrom(path, from).split('\n')
  return lines.flatMap((line) => {
    // The last line may be incomplete if the server was killed.
    if (!line.endsWith('}')) return []
    const { verb, user, objectRef, stageTimestamp, responseStatus, responseObject } = JSON.parse(
      line,
    ) as AuditEvent
    if (objectRef.subresource !== 'status' || verb !== 'patch') return []
    return [
      {
        by: user.username.split(':').at(-1) ?? '',
        at: Date.parse(stageTimestamp),
        object: `${objectRef.resource}/${objectRef.name}`,
        code: responseStatus?.code ?? 0,
        message: responseStatus?.message ?? '',
        uid: responseObject?.metadata?.uid ?? '',
        version: responseObject?.metadata?.resourceVersion ?? '',
        generation: responseObject?.metadata?.generation ?? 0,
        status: withoutTimes(responseObject?.status ?? {}),
      },
    ]
  })
}

const withoutTimes = (status: Status): Status =>
  JSON.parse(
    JSON.stringify(status, (key, value) => (key === 'lastTransitionTime' ? undefined : value)),
  )

/** Did a status say one thing, another, and the first again, of the same generation? */
function flapsOf(object: string, writes: readonly StatusWrite[]): string[] {
  const runs = new Map<string, string[]>()
  for (const { generation, status } of writes) {
    for (const [index, { type, status: value, reason }] of allConditions(status).entries()) {
      const key = `${object} generation ${generation}: ${type} (${index})`
      const said = `${value}/${reason}`
      const before = runs.get(key) ?? []
      if (before.at(-1) !== said) runs.set(key, [...before, said])
    }
  }
  return [...runs].flatMap(([key, said]) =>
    new Set(said).size < said.length ? [`${key}: ${said.join(', ')}`] : [],
  )
}

/** Conditions that two statuses do not share. */
function differing(before: Status, after: Status): string {
  const texts = [before, after].map((status) =>
    allConditions(status).map((one) => canonicalJson(one)),
  )
  const [old = [], fresh = []] = texts
  const only = (one: string[], other: string[]) => one.filter((text) => !other.includes(text))
  return `${only(old, fresh).join(' ')} -> ${only(fresh, old).join(' ')}`
}

/** A route's status follows from its spec alone in these runs: one write for each generation. */
function repeatedOf(object: string, writes: readonly StatusWrite[]): string[] {
  return writes.flatMap((write, index) => {
    const before = writes[index - 1]
    if (before === undefined) return []
    const where = `${object} version ${write.version} (by ${write.by}, after ${before.by})`
    if (write.version === before.version) return [`${where}: a write that changed nothing`]
    if (canonicalJson(write.status) === canonicalJson(before.status)) {
      return [`${where}: the same status again`]
    }
    if (!object.startsWith('httproutes/') || write.generation !== before.generation) return []
    const both = `${differing(before.status, write.status)}`
    return [`${where}: a second write for generation ${write.generation}: ${both}`]
  })
}

export function judgeWrites(writes: readonly StatusWrite[]): WriteVerdict {
  const taken = writes.filter(({ code }) => code < 300)
  const byObject = Map.groupBy(taken, ({ object, uid }) => `${object} ${uid}`)
  const repeated: string[] = []
  const flaps: string[] = []
  for (const ours of byObject.values()) {
    const { object = '' } = ours[0] ?? {}
    repeated.push(...repeatedOf(object, ours))
    flaps.push(...flapsOf(object, ours))
  }
  const count = (code: number) => writes.filter((write) => write.code === code).length
  // Others pass: the object has changed or gone, or the server has just started (403, 5xx).
  const others = writes.filter(({ code }) => code === 400 || code === 422)
  return {
    writes: taken.length,
    conflicts: count(409),
    refused: others.map(
      ({ object, by, code, message }) => `${object} by ${by}: ${code} ${message}`,
    ),
    repeated,
    flaps,
  }
}
