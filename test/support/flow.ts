/**
 * Golden runs of the control plane: manifests through the real file source and the fold; statuses,
 * refusals and desired resources out, as YAML. A case is a folder: `in.yaml` gives `out.yaml`. If
 * there is an `in.2.yaml`, it replaces the manifests and gives `out.2.yaml`, and so on. After
 * each step a proxy acknowledges everything, unless the first line says `# no proxy`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Document, isMap, isScalar, isSeq, type Node, visit } from 'yaml'
import { configAcked, createEvent, proxyConnected, type SluiceEvent } from '../../events/index.ts'
import { Fold } from '../../src/control/actors/fold.ts'
import { createGraph } from '../../src/control/desired/derivations.ts'
import { MemoryLog, type Recorded } from '../../src/control/log/index.ts'
import { apiBinding, builtInObjects, regexProblem } from '../../src/control/plane/api-binding.ts'
import { DigestKey } from '../../src/control/watch/digest-key.ts'
import { FileSource } from '../../src/control/watch/files.ts'
import { ResourceIndex } from '../../src/control/watch/resource-index.ts'
import type { ObjectRef } from '../../src/ground/model/names.ts'
import { compareText, parseObjectKey } from '../../src/ground/model/names.ts'

const sourceName = '/sluice/files'
/** Always the same, so that digests are. */
const digestKey = new DigestKey(new Uint8Array(32))

/** Names of the files of one step, beginning with 1. */
export function stepFiles(step: number): { input: string; output: string } {
  const part = step === 1 ? '' : `.${step}`
  return { input: `in${part}.yaml`, output: `out${part}.yaml` }
}

class FlowRun {
  readonly fold = new Fold(createGraph({ checkRegex: regexProblem }))
  readonly #log = new MemoryLog()
  readonly #index = new ResourceIndex(sourceName)
  #minute = 0

  /** Puts a manifest file in place of the one before. */
  async step(path: string): Promise<void> {
    const time = Date.UTC(2026, 0, 1, 0, this.#minute++)
    const source = new FileSource({
      ...apiBinding,
      paths: [path],
      clock: { now: () => time },
      digestKey,
      builtIn: builtInObjects,
      onChange: async (events: readonly SluiceEvent[]) => void (await this.#log.append(events)),
      onProblem: () => undefined,
    })
    await source.lead(this.#index)
    await source.close()
    await this.#catchUp()
    if (readFileSync(path, 'utf8').startsWith('# no proxy\n')) return
    await this.#acknowledge(new Date(time).toISOString())
  }

  events(): Promise<readonly Recorded[]> {
    return Array.fromAsync(this.#log.read())
  }

  async #catchUp(): Promise<void> {
    for await (const recorded of this.#log.read()) this.fold.apply(recorded)
  }

  async #acknowledge(time: string): Promise<void> {
    const context = { source: '/sluice/xds', time, epoch: 0 }
    const proxy = 'flow'
    const sequence = this.fold.position
    const content = (what: string) => ({ id: `${what}:${sequence}`, subject: 'flow.proxy' })
    await this.#log.append([
      createEvent(proxyConnected, context, {
        ...content('connected'),
        data: { proxy, address: '192.0.2.1' },
      }),
      createEvent(configAcked, context, { ...content('acked'), data: { proxy, sequence } }),
    ])
    await this.#catchUp()
  }
}

/** Runs all steps of a case; the expected text of each output file, by its name. */
export async function runFlow(folder: string): Promise<ReadonlyMap<string, string>> {
  const outputs = new Map<string, string>()
  for await (const { run, path, output } of stepsOf(folder)) {
    outputs.set(output, render(run.fold, readFileSync(path, 'utf8')))
  }
  return outputs
}

/** The log of a case after its last step. */
export async function flowEvents(folder: string): Promise<readonly Recorded[]> {
  const steps = await Array.fromAsync(stepsOf(folder))
  return (await steps.at(-1)?.run.events()) ?? []
}

async function* stepsOf(folder: string) {
  const run = new FlowRun()
  for (let step = 1; existsSync(join(folder, stepFiles(step).input)); step++) {
    const { input, output } = stepFiles(step)
    const path = join(folder, input)
    await run.step(path)
    yield { run, path, output }
  }
}

const named = ({ kind, namespace, name }: ObjectRef): string =>
  namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`

function render(fold: Fold, input: string): string {
  // The default class always exists; it is printed only if the input mentions it.
  const isShown = ({ kind, name }: ObjectRef) =>
    kind !== 'GatewayClass' || input.includes(`metadata: { name: ${name} }`)
  const statuses = fold.statuses().filter(([ref]) => isShown(ref))
  const refused = [...fold.graph.objects()].filter((state) => state.refused !== undefined)
  const deployments = [...fold.deployments()].sort(([a], [b]) => compareText(a, b))
  const isAboutParameters = input.includes('kind: GatewayParameters')
  const resources = [...fold.resources()]
    .sort((a, b) => compareText(a.resource.key, b.resource.key))
    .map(({ resource: { key, type: _, ...rest } }) => [key, readable(rest)])
  const content = {
    statuses: Object.fromEntries(statuses.map(([ref, status]) => [named(ref), untimed(status)])),
    ...(refused.length > 0 && {
      refused: Object.fromEntries(refused.map((state) => [named(state.ref), state.refused])),
    }),
    resources: Object.fromEntries(resources),
    ...(isAboutParameters && {
      deployments: Object.fromEntries(
        deployments.map(([key, deployment]) => [named(parseObjectKey(key)), deployment]),
      ),
    }),
  }
  const document = new Document(content, { aliasDuplicateObjects: false })
  visit(document, {
    Map: (_, node) => void flowSmall(node),
    Seq: (_, node) => void flowSmall(node),
  })
  return document.toString({ lineWidth: 0, flowCollectionPadding: true })
}

/** Transition times are shown by tests of their own; here they would be noise. */
function untimed(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, member) => (key === 'lastTransitionTime' ? undefined : member)),
  )
}

/** Compiled policies travel as text. */
function readable(resource: object): object {
  return 'config' in resource
    ? { ...resource, config: JSON.parse(String(resource.config)) }
    : resource
}

/** Writes an object with only plain values on one line. */
function flowSmall(node: Node): void {
  if (!isMap(node) && !isSeq(node)) return
  const values: unknown[] = isMap(node) ? node.items.map(({ value }) => value) : node.items
  const isPlain = (value: unknown): boolean =>
    isScalar(value) || ((isMap(value) || isSeq(value)) && value.items.length === 0)
  if (values.length > 0 && values.every(isPlain)) node.flow = true
}
