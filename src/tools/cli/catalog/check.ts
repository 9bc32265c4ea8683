/** `sluice catalog check` lists models that are in use and that no catalog gives rules or prices. */
import type { ModelCatalog } from '../../../engines/messages/catalog/catalog.ts'
import {
  configOfNamed,
  providerNames,
  vendors,
} from '../../../gateway/backends/ai/providers/index.ts'
import { isObject } from '../../../ground/base/json-object.ts'
import { eachDecision } from '../decisions/source.ts'
import { readManifests } from '../recording/recording.ts'
import { writtenObjects } from '../recording/written-objects.ts'
import { exitCode, type Output } from '../shared/output.ts'
import { readCatalogs } from './files.ts'

export interface CheckOptions {
  readonly file?: readonly string[]
  readonly recordDir?: string
  readonly modelCatalog?: readonly string[]
}

/** One use of a model. */
interface ModelUse {
  readonly model: string
  /** Name of the provider in telemetry. */
  readonly provider: string
  /** Where it is used, such as `GatewayBackend default/models`. */
  readonly user: string
}

/** The exit code is 1 if a catalog has a problem, or if a model is unknown. */
export async function checkCatalog(
  options: CheckOptions,
  { print, report }: Output,
): Promise<number> {
  const { catalog, problems } = readCatalogs(options.modelCatalog)
  for (const problem of problems) print(problem)
  const used = [
    ...(await modelsInManifests(options.file)),
    ...(await modelsInRecords(options.recordDir, report)),
  ]
  const lines = new Set(used.flatMap((one) => findingOf(catalog, one)))
  for (const line of lines) print(line)
  report(
    `catalog ${catalog.digest}: ${used.length} uses of models, ${lines.size} without rules or prices`,
  )
  return problems.length + lines.size === 0 ? exitCode.success : exitCode.negative
}

function findingOf(catalog: ModelCatalog, { model, provider, user }: ModelUse): string[] {
  const { basis, name } = catalog.find(model, provider)
  const entry = catalog.entryOf(model, provider)
  if (basis === 'known' && entry?.rates !== undefined) return []
  const missing = [
    ...(basis === 'known' ? [] : [name === '' ? 'no rules' : `the rules of ${name} apply`]),
    ...(entry?.rates === undefined ? ['no prices'] : []),
  ]
  return [`${user}: ${model} at ${provider}: ${missing.join(', ')}`]
}

async function modelsInManifests(paths: readonly string[] = []): Promise<ModelUse[]> {
  if (paths.length === 0) return []
  const written = writtenObjects(await readManifests(paths))
  const found = written.map(async ({ kind, namespace, name, object }) =>
    (await modelsIn(object)).map((one) => ({ ...one, user: `${kind} ${namespace}/${name}` })),
  )
  return (await Promise.all(found)).flat()
}

/** Finds the models of providers at any depth: of backends, and of the groups of backends. */
async function modelsIn(value: unknown): Promise<Omit<ModelUse, 'user'>[]> {
  if (Array.isArray(value)) return (await Promise.all(value.map(modelsIn))).flat()
  if (!isObject(value)) return []
  const named = providerNames.flatMap((name) => {
    const config = value[name]
    const { model, deploymentName } = isObject(config) ? config : {}
    const sent = model ?? deploymentName
    return isObject(config) && typeof sent === 'string' ? [useOf(name, config, sent)] : []
  })
  const inner = Object.values(value).map(modelsIn)
  return [...(await Promise.all(named)), ...(await Promise.all(inner)).flat()]
}

/** `name` is that of the provider, as users write it. */
async function useOf(name: string, config: object, model: string): Promise<Omit<ModelUse, 'user'>> {
  const { vendor, systemName } = configOfNamed(name, config)
  const { default: provider } = await vendors[vendor as keyof typeof vendors].provider()
  return { model, provider: systemName ?? provider.systemName }
}

async function modelsInRecords(
  recordDir: string | undefined,
  report: Output['report'],
): Promise<ModelUse[]> {
  if (recordDir === undefined) return []
  const found = new Map<string, ModelUse>()
  await eachDecision({ recordDir }, {}, report, ({ details }) => {
    const { 'gen_ai.request.model': model, 'gen_ai.provider.name': provider } = details
    if (typeof model === 'string' && typeof provider === 'string') {
      found.set(`${provider}\0${model}`, { model, provider, user: 'records' })
    }
    return true
  })
  return [...found.values()]
}
