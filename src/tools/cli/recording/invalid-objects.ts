/** Finds what stops a command that reads a log: an object that no gateway has put into it. */
import { validateObject } from '../../../control/api/validate.ts'
import { exportBeginning, readExportLines } from '../../../control/log/export.ts'
import { LogError, type Recorded, readEmbeddedLog } from '../../../control/log/index.ts'
import { isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import { isDatabase } from './log-files.ts'
import { openedLogs } from './opened-logs.ts'

/**
 * Returns an error that names the first invalid object of the opened logs: the file, the line or position, and
 * the field. Returns undefined if all objects are valid. Gateways check objects before they write them, and
 * versions may differ in what is valid. So this is called only if a command has failed.
 */
export async function invalidObjectError(cause: unknown): Promise<LogError | undefined> {
  for (const path of openedLogs) {
    const why = isDatabase(path) ? await problemOfLog(path) : await problemOfExport(path)
    if (why !== undefined) return new LogError('foreign', why, { cause })
  }
  return undefined
}

async function problemOfLog(path: string): Promise<string | undefined> {
  const log = readEmbeddedLog(path)
  try {
    for await (const recorded of log.read()) {
      const problem = problemOf(recorded)
      if (problem !== undefined) return `${path}: position ${recorded.position}: ${problem}`
    }
  } finally {
    await log.close()
  }
  return undefined
}

async function problemOfExport(path: string): Promise<string | undefined> {
  for await (const { line, recorded } of readExportLines(path)) {
    const problem = problemOf(recorded)
    if (problem !== undefined) return `${path}:${line}: ${problem}`
  }
  const { parts } = await exportBeginning(path)
  const [part] = parts
  return part && `${path}: the snapshot at position ${part.position} is not the state of a log`
}

function problemOf({ event }: Recorded): string | undefined {
  if (event.type !== 'dev.sluice.resource.applied.v1') return undefined
  const { kind, name, namespace, object } = event.data
  const { metadata } = object
  const isOther =
    object.kind !== kind ||
    !isObject(metadata) ||
    metadata.name !== name ||
    (metadata.namespace ?? '') !== namespace
  if (isOther) return 'event.data.object: it is another object than the event names'
  const checked = validateObject(withoutFacts(object))
  if (checked.ok) return factsProblem(kind, object.facts)
  const [{ path = '', message = '' } = {}] = checked.problems
  return `event.data.object${path === '' ? '' : '.'}${path}: ${message}`
}

/** What the log has in place of parts of an object is no part of its schema. */
function withoutFacts({ facts: _facts, ...object }: JsonObject): JsonObject {
  return object
}

function factsProblem(kind: string, facts: unknown): string | undefined {
  if (kind !== 'Secret' && kind !== 'Pod') return undefined
  const at = 'event.data.object.facts'
  if (!isObject(facts)) return `${at}: expected an object`
  if (kind === 'Pod') return undefined
  const { entries } = facts
  if (!isObject(entries)) return `${at}.entries: expected an object`
  for (const [name, entry] of Object.entries(entries)) {
    if (!isObject(entry) || typeof entry.digest !== 'string') {
      return `${at}.entries[${JSON.stringify(name)}].digest: expected a string`
    }
    const problem = entryProblem(entry)
    if (problem !== undefined) return `${at}.entries[${JSON.stringify(name)}].${problem}`
  }
  return undefined
}

function entryProblem({ certificates, privateKey, htpasswd }: JsonObject): string | undefined {
  for (const [field, list] of Object.entries({ certificates, htpasswd })) {
    if (list === undefined) continue
    if (!Array.isArray(list) || !list.every(isObject)) return `${field}: expected a list of objects`
  }
  for (const one of (certificates as JsonObject[] | undefined) ?? []) {
    if (one.isValid === true && !Array.isArray(one.names))
      return 'certificates: names must be a list'
  }
  if (privateKey === undefined) return undefined
  if (!isObject(privateKey)) return 'privateKey: expected an object'
  return Array.isArray(privateKey.pairsWith) ? undefined : 'privateKey.pairsWith: expected a list'
}
