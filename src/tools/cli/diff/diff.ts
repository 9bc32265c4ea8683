/** `sluice diff A B` compares two states, each read from manifests or from a log. */
import { statSync } from 'node:fs'
import { objectText, parseObjectKey } from '../../../ground/model/names.ts'
import {
  compareStates,
  contentOf,
  type Difference,
  statusLines,
} from '../../../past/explain/differences.ts'
import { isLogFile } from '../recording/log-files.ts'
import { type RecordingOptions, readState } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'

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

function statusText({ key, before, after }: Difference): string[] {
  const [old, fresh] = [statusLines(before), statusLines(after)]
  return [
    objectText(parseObjectKey(key)),
    ...old.filter((line) => !fresh.includes(line)).map((line) => `  - ${line}`),
    ...fresh.filter((line) => !old.includes(line)).map((line) => `  + ${line}`),
  ]
}

/** The exit code is 1 if the states differ. */
export async function diff(a: string, b: string, report: Output['report']): Promise<CommandResult> {
  const [from, to] = [optionsFor(a), optionsFor(b)]
  const { fold: old } = await readState(from, report, { name: `${a}: ` })
  const { fold: fresh } = await readState(to, report, { name: `${b}: ` })
  // Manifests contain no proxies, so comparing them with a log ignores what depends on proxies.
  const withoutProxies = (from.file === undefined) !== (to.file === undefined)
  const { statuses, resources } = compareStates(contentOf(old), contentOf(fresh), withoutProxies)
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
