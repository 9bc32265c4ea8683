/** `sluice ai` runs a gateway for language models on this machine, without a manifest of the user. */
import { join } from 'node:path'
import { stateFolder } from '../../../control/plane/open-log.ts'
import { writeYaml } from '../import/write-yaml.ts'
import { besideOthers, type ClientKeyOptions, clientKeyOf, writePrivate } from '../local/gateway.ts'
import { type RunOptions, run } from '../run/run.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { budgetOf } from './budget.ts'
import { manifestsOf, type ServedVendor } from './manifests.ts'
import { type AiVendor, modelPatterns, ollama, servesAny, vendors } from './vendors.ts'

export interface AiOptions extends Omit<RunOptions, 'file'>, ClientKeyOptions {
  /** Names of environment variables with the keys of vendors, by the names of the vendors. */
  readonly keyVariables: Readonly<Record<string, string | undefined>>
  readonly fromEnv?: boolean
  readonly ollama?: boolean
  /** `NAME=URL` each. */
  readonly baseUrl: readonly string[]
  readonly port: number
  readonly masks: boolean
  /** Such as `5USD/day`. */
  readonly budget?: string
  readonly print?: boolean
}

export async function ai(options: AiOptions, output: Output): Promise<number> {
  const served = servedBy(options, process.env)
  const key = clientKeyOf(options)
  const { port, masks: hasMasks } = options
  const budget = options.budget === undefined ? undefined : budgetOf(options.budget)
  const settings = { port, keyHash: key?.hash, hasMasks, budget }
  const text = manifestsOf(served, settings).map(writeYaml).join('---\n')
  if (options.print === true) {
    output.print(text.trimEnd())
    if (key?.isNew === true) output.report(`key of clients: ${key.shown}`)
    return exitCode.success
  }
  const file = join(stateFolder(), `ai-${port}`, 'manifests.yaml')
  writePrivate(file, text)
  output.report(`manifests: ${file}`)
  for (const line of hintsFor(served, { port, key: key?.shown })) output.report(line)
  return run({ ...besideOthers, ...options, file: [file] }, output)
}

type Variables = Readonly<Record<string, string | undefined>>

/** @throws UsageError if there is no vendor, or two that serve every model */
function servedBy(options: AiOptions, environment: Variables): ServedVendor[] {
  const urls = baseUrlsOf(options.baseUrl)
  const served = vendors.flatMap((vendor): ServedVendor[] => {
    const variable = variableOf(vendor, options, environment)
    return variable === undefined ? [] : [{ vendor, variable, baseUrl: urls.get(vendor.name) }]
  })
  if (options.ollama === true) {
    const baseUrl = urls.get(ollama.name) ?? 'http://127.0.0.1:11434'
    served.push({ vendor: ollama, variable: undefined, baseUrl })
  }
  if (served.length === 0) {
    throw new UsageError(
      'no vendor is chosen; name the variable with a key, such as --openai-key-env OPENAI_API_KEY, or use --from-env or --ollama',
    )
  }
  const [first, second] = served.filter(({ vendor }) => servesAny(vendor))
  if (first !== undefined && second !== undefined) {
    throw new UsageError(
      `${first.vendor.name} and ${second.vendor.name} would both serve every model that no other vendor has; choose one of them`,
    )
  }
  const unused = [...urls.keys()].find((name) => !served.some(({ vendor }) => vendor.name === name))
  if (unused !== undefined) throw new UsageError(`--base-url ${unused}: no such vendor is chosen`)
  return served
}

/** The variable with the key of a vendor; undefined if the vendor is not served. */
function variableOf(
  { name, variables }: AiVendor,
  { keyVariables, fromEnv }: AiOptions,
  environment: Variables,
): string | undefined {
  const given = keyVariables[name]
  if (given === undefined) {
    return fromEnv === true ? variables.find((variable) => environment[variable]) : undefined
  }
  if (!environment[given]) {
    throw new UsageError(`--${name}-key-env ${given}: this environment variable is not set`)
  }
  return given
}

function baseUrlsOf(texts: readonly string[]): Map<string, string> {
  const urls = new Map<string, string>()
  for (const text of texts) {
    const [, name, url] = /^([a-z]+)=(https?:\/\/.+)$/.exec(text) ?? []
    if (name === undefined || url === undefined || !URL.canParse(url)) {
      throw new UsageError(
        `--base-url ${text}: expected NAME=URL, such as openai=http://127.0.0.1:9000/v1`,
      )
    }
    urls.set(name, url)
  }
  return urls
}

/** What users set in their programs. */
function hintsFor(
  served: readonly ServedVendor[],
  { port, key = 'any' }: { readonly port: number; readonly key: string | undefined },
): string[] {
  const base = `http://127.0.0.1:${port}`
  const models = served.map(({ vendor }) => `${modelPatterns(vendor).join(' ')} (${vendor.name})`)
  return [
    `models: ${models.join(', ')}`,
    '',
    'Point your programs at the gateway:',
    `  export OPENAI_BASE_URL=${base}/v1 OPENAI_API_KEY=${key}`,
    `  export ANTHROPIC_BASE_URL=${base} ANTHROPIC_API_KEY=${key}`,
    `  export GOOGLE_GEMINI_BASE_URL=${base} GEMINI_API_KEY=${key}`,
    '',
  ]
}
