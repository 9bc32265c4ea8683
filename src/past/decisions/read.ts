/** Reads blocks of decisions. A damaged part is skipped and reported with its file and offset. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import {
  type Attempt,
  type Block,
  BlockSchema,
  type Decision,
  type Note,
  type Plan,
} from '../../../proto/gen/decisions_pb.ts'
import { formatVersion, settingText } from './decision-log.ts'
import { framesOf } from './frame.ts'
import type { RecordedAttempt, RecordedDecision, RecordedHeader, RecordedStep } from './record.ts'
import { decisionFiles } from './ring.ts'
import { TimeTexts } from './time-texts.ts'

/** A part of a file that cannot be read. */
export interface ReadProblem {
  readonly file: string
  readonly offset: number
  readonly message: string
}

export type ReadResult = { readonly decision: RecordedDecision } | { readonly problem: ReadProblem }

/**
 * Yields every decision in a folder, in the order in which requests ended. Each ring is read file by file,
 * so that memory use does not depend on the number of files. If a text is given, blocks that do not contain
 * it are skipped.
 */
export function readFolder(folder: string, text?: string): Generator<ReadResult> {
  const groups = [...Map.groupBy(decisionFiles(folder), ringOf).values()]
  const rings = groups.map((names) => readFiles(folder, names, text))
  const [only] = rings
  return only !== undefined && rings.length === 1 ? only : mergeByEnd(rings)
}

/** Yields at most a number of decisions of a folder, about the newest ones; unreadable parts are skipped. */
export function* readNewest(folder: string, most: number): Generator<RecordedDecision> {
  const rings = [...Map.groupBy(decisionFiles(folder), ringOf).values()]
  const mostOfRing = Math.ceil(most / Math.max(1, rings.length))
  for (const names of rings) yield* newestOfRing(folder, names.toReversed(), mostOfRing)
}

function* newestOfRing(
  folder: string,
  names: readonly string[],
  most: number,
): Generator<RecordedDecision> {
  let left = most
  for (const name of names) {
    for (const block of blocksIn(join(folder, name)).toReversed()) {
      if (left <= 0) return
      try {
        for (const decision of readBlock(block)) {
          if (left-- <= 0) return
          yield decision
        }
      } catch {
        // The block was damaged, or has another version.
      }
    }
  }
}

/** The readable blocks of a file; none if a running proxy has deleted it. */
function blocksIn(file: string): Buffer[] {
  try {
    return [...framesOf(readFileSync(file))].flatMap((frame) =>
      'block' in frame ? [frame.block] : [],
    )
  } catch {
    return []
  }
}

/** The digest of a field that has none. */
const noDigest = '0'.repeat(16)

/** Returns the name of the ring: the file name without the number of the file. */
const ringOf = (name: string): string => name.slice(0, name.lastIndexOf('-'))

function* readFiles(
  folder: string,
  names: readonly string[],
  text: string | undefined,
): Generator<ReadResult> {
  for (const name of names) {
    const file = join(folder, name)
    try {
      yield* readBlocks(readFileSync(file), file, text)
    } catch (error) {
      // A running proxy may have deleted the oldest file of its ring.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      yield { problem: { file, offset: 0, message: (error as Error).message } }
    }
  }
}

/** Merges the decisions of several rings, each of which is in order. */
function* mergeByEnd(rings: readonly Generator<ReadResult>[]): Generator<ReadResult> {
  const heads: { readonly ring: Generator<ReadResult>; decision: RecordedDecision; end: number }[] =
    []
  for (const ring of rings) {
    const decision = yield* nextDecision(ring)
    if (decision !== undefined) heads.push({ ring, decision, end: endOf(decision) })
  }
  for (;;) {
    const [first, ...others] = heads
    if (first === undefined) return
    const earliest = others.reduce((least, head) => (head.end < least.end ? head : least), first)
    yield { decision: earliest.decision }
    const decision = yield* nextDecision(earliest.ring)
    if (decision === undefined) heads.splice(heads.indexOf(earliest), 1)
    else {
      earliest.decision = decision
      earliest.end = endOf(decision)
    }
  }
}

const endOf = ({ time, response }: RecordedDecision): number =>
  Date.parse(time) + response.durationMs

/** Yields the problems before the next decision of a ring, and returns that decision. */
function* nextDecision(
  ring: Generator<ReadResult>,
): Generator<ReadResult, RecordedDecision | undefined> {
  for (;;) {
    const { done, value } = ring.next()
    if (done === true) return undefined
    if ('decision' in value) return value.decision
    yield value
  }
}

/**
 * Yields the decisions of a file or a message, which consists of blocks. If a text is given, blocks that do
 * not contain it are skipped.
 */
export function* readBlocks(bytes: Buffer, file: string, text?: string): Generator<ReadResult> {
  for (const frame of framesOf(bytes)) {
    const { offset } = frame
    if ('problem' in frame) {
      yield { problem: { file, offset, message: frame.problem } }
      continue
    }
    if (text !== undefined && !frame.block.includes(text)) continue
    try {
      for (const decision of readBlock(frame.block)) yield { decision }
    } catch (error) {
      yield { problem: { file, offset, message: (error as Error).message } }
    }
  }
}

/**
 * Yields the decisions of one block.
 * @throws Error if the bytes are not a block, or if it has another version
 */
function* readBlock(bytes: Uint8Array): Generator<RecordedDecision> {
  const block = fromBinary(BlockSchema, bytes)
  if (block.version !== formatVersion) {
    throw new Error(
      `the block has version ${block.version} of the format; this version of Sluice reads ${formatVersion}`,
    )
  }
  const reader = new BlockReader(block)
  for (const decision of block.decisions) yield reader.read(decision)
}

class BlockReader {
  readonly #block: Block
  readonly #plans: readonly (readonly PlannedStep[])[]
  /** Steps without notes, by the plans and by how far these ran, because most decisions share them. */
  readonly #plainSteps = new Map<string, readonly RecordedStep[]>()
  readonly #times = new TimeTexts()

  constructor(block: Block) {
    this.#block = block
    this.#plans = block.plans.map((plan) => this.#stepsOf(plan))
  }

  read(decision: Decision): RecordedDecision {
    const { proxy, worker, baseMs, share } = this.#block
    const { id, startedUs, position, attempts } = decision
    const setting = this.#block.setting || (share === undefined ? undefined : settingText(share))
    const weight = this.#weight(decision)
    return {
      id,
      ...(decision.isCut && { isCut: true as const }),
      time: this.#times.of(baseMs + Number(startedUs) / 1000),
      proxy,
      worker,
      ...(setting !== undefined && { setting }),
      ...(weight !== 1 && { weight }),
      position: Number(position),
      request: this.#request(decision),
      route: this.#route(decision),
      steps: this.#steps(decision),
      attempts: attempts.map((attempt) => this.#attempt(attempt)),
      response: this.#response(decision),
      details: this.#details(decision),
    }
  }

  /** Blocks without a setting have no weights: requests without an error were recorded with the share of the block. */
  #weight({ weight, status, ending }: Decision): number {
    if (weight > 0) return weight
    const { setting, share = 1 } = this.#block
    const isFailure = status === 0 || status >= 400 || this.#text(ending) !== 'complete'
    return setting !== '' || isFailure || share === 0 ? 1 : 1 / share
  }

  #attempt({ endpoint, failure, provider, group }: Attempt): RecordedAttempt {
    const name = this.#text(provider)
    return {
      endpoint: this.#text(endpoint) ?? '',
      failure: this.#text(failure) ?? '',
      ...(name !== undefined && { provider: name, group }),
    }
  }

  #details({ details }: Decision): Record<string, string | number> {
    return Object.fromEntries(
      details.map(({ name, value }) => {
        const read = value.case === 'number' ? value.value : this.#text(value.value ?? 0)
        return [this.#text(name) ?? '', read ?? '']
      }),
    )
  }

  #request(decision: Decision): RecordedDecision['request'] {
    const { method, host, source, port, httpVersion, isTls } = decision
    const [path = '', query] = splitOnce(decision.path, '?')
    return {
      method: this.#text(method) ?? '',
      host: this.#text(host) ?? '',
      path,
      ...(query !== undefined && { query }),
      protocol: httpVersion === 20 ? 'HTTP/2' : httpVersion === 10 ? 'HTTP/1.0' : 'HTTP/1.1',
      scheme: isTls ? 'https' : 'http',
      port,
      source,
      headers: this.#headers(decision),
      digestKey: this.#block.digestKey,
    }
  }

  #headers({ headerNames, headerDigests, headerValues }: Decision): RecordedHeader[] {
    const digests = Buffer.from(headerDigests).toString('hex')
    const values =
      headerValues.length === 0
        ? undefined
        : new Map(headerValues.map(({ field, value }) => [field, value]))
    return headerNames.map((number, at) => {
      const name = this.#text(number) ?? ''
      const digest = digests.slice(at * 16, at * 16 + 16)
      const hasDigest = digest !== '' && digest !== noDigest
      const value = values?.get(at)
      if (value === undefined) return hasDigest ? { name, digest } : { name }
      return hasDigest ? { name, value, digest } : { name, value }
    })
  }

  #route(decision: Decision): RecordedDecision['route'] {
    const { rule } = decision
    const found: {
      -readonly [K in keyof RecordedDecision['route']]: RecordedDecision['route'][K]
    } = {}
    for (const name of placeTexts) {
      if (name === 'rule') {
        if (rule > 0) found.rule = rule - 1
        continue
      }
      const text = this.#text(decision[name])
      if (text !== undefined) found[name] = text
    }
    return found
  }

  #steps(decision: Decision): readonly RecordedStep[] {
    if (decision.notes.length > 0) return this.#stepsWithNotes(decision)
    const { beforeRouting, afterRouting, answers, ofBackend, isInStep } = decision
    const passed = `${decision.beforeRoutingPassed} ${decision.afterRoutingPassed} ${decision.answersPassed} ${decision.ofBackendPassed}`
    const key = `${beforeRouting} ${afterRouting} ${answers} ${ofBackend} ${passed} ${isInStep}`
    let steps = this.#plainSteps.get(key)
    if (steps === undefined) {
      steps = this.#stepsWithNotes(decision)
      this.#plainSteps.set(key, steps)
    }
    return steps
  }

  /** Returns the steps that ran in the phases, and then those that ran as a part of the backend. */
  #stepsWithNotes(decision: Decision): RecordedStep[] {
    const notes = Map.groupBy(decision.notes, ({ step }) => this.#text(step) ?? '')
    const inPhases = this.#inPhases(decision).map((step) => {
      const found = notes.get(step.step) ?? []
      const verdict = this.#answersLater(step, found) ? 'answer' : step.verdict
      return { ...step, verdict, notes: found.map(({ text }) => text) }
    })
    for (const { step } of inPhases) notes.delete(step)
    return [...inPhases, ...Array.from(notes, ([step, found]) => this.#partOfBackend(step, found))]
  }

  /** Whether a step that let the request pass has answered it later, as a part of the backend. */
  #answersLater({ config }: Omit<RecordedStep, 'notes'>, notes: readonly Note[]): boolean {
    return notes.some(
      ({ isResponse, plan }) => isResponse && this.#plans[plan - 1]?.[0]?.config === config,
    )
  }

  #inPhases(decision: Decision): Omit<RecordedStep, 'notes'>[] {
    const places = [
      [decision.beforeRouting, decision.beforeRoutingPassed],
      [decision.afterRouting, decision.afterRoutingPassed],
      [decision.answers, decision.answersPassed],
      [decision.ofBackend, decision.ofBackendPassed],
    ] as const
    const ran: Omit<RecordedStep, 'notes'>[] = []
    for (const [number, passed] of places) {
      const plan = this.#plans[number - 1] ?? []
      for (const step of plan.slice(0, passed)) ran.push({ ...step, verdict: 'pass' })
      const last = decision.isInStep ? plan[passed] : undefined
      if (last !== undefined) return [...ran, { ...last, verdict: 'answer' }]
    }
    return ran
  }

  /** Returns a step that ran as a part of the backend. Only its notes show that it ran. */
  #partOfBackend(step: string, notes: readonly Note[]): RecordedStep {
    const plan = notes.find(({ plan }) => plan > 0)?.plan ?? 0
    const { from, config } = this.#plans[plan - 1]?.[0] ?? { from: [], config: '' }
    const verdict = notes.some(({ isResponse }) => isResponse) ? 'answer' : 'pass'
    return { step, from, config, verdict, notes: notes.map(({ text }) => text) }
  }

  #response(decision: Decision): RecordedDecision['response'] {
    const { status, reason, detail, ending } = decision
    const error = this.#text(decision.error)
    return {
      status,
      reason: this.#text(reason) ?? '',
      ...(error !== undefined && { error }),
      ...(detail !== '' && { detail }),
      ending: this.#text(ending) ?? '',
      requestBytes: Number(decision.requestBytes),
      responseBytes: Number(decision.responseBytes),
      durationMs: Number(decision.durationUs) / 1000,
    }
  }

  #stepsOf({ steps }: Plan): PlannedStep[] {
    return steps.map(({ name, objects, config }) => ({
      step: this.#text(name) ?? '',
      config: this.#text(config) ?? '',
      from: objects.map((object) => ({ object: this.#text(object) ?? '' })),
    }))
  }

  /** @throws Error if the block has no such text */
  #text(number: number): string | undefined {
    if (number === 0) return undefined
    const text = this.#block.texts[number - 1]
    if (text === undefined) throw new Error(`the block has no text ${number}`)
    return text
  }
}

/** The members of a route, in their order in JSON. */
const placeTexts = [
  'gateway',
  'listener',
  'route',
  'rule',
  'ruleName',
  'backend',
  'endpoint',
] as const

/** Splits a text at the first separator; the second part is undefined if there is none. */
function splitOnce(text: string, separator: string): readonly [string, string?] {
  const at = text.indexOf(separator)
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

type PlannedStep = Pick<RecordedStep, 'step' | 'from' | 'config'>
