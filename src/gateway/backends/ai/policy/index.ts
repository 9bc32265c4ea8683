import { parseDurationMs } from '../../../../ground/base/duration.ts'
import type { References } from '../../../../ground/model/references.ts'
import { type Compiled, definePolicy } from '../../../policies/define.ts'
import type { BackendAiConfig, CacheConfig, SemanticConfig } from './config.ts'
import { GuardCompiler } from './guard-compiler.ts'
import { type AnswerCacheSpec, type BackendAiSpec, backendAiSchema } from './schema.ts'

/** Messages in the status for policies with guards and types that guards cannot read. */
const unguardedTypes: ReadonlyMap<string, string> = new Map([
  ['Passthrough', 'guards do not see requests of type Passthrough'],
  ['Realtime', 'requests of type Realtime are refused, because guards cannot read them'],
])

const defaultTtlMs = 300_000
const defaultCollapseMs = 10_000

const defaultThreshold = 95
const defaultEntries = 1_000
const defaultEmbeddingMs = 1_000

function cacheOf(
  { ttl, scope = 'Principal', collapseTimeout, semantic }: AnswerCacheSpec,
  references: References,
  guards: GuardCompiler,
): CacheConfig {
  const compared = semantic && semanticOf(semantic, references, guards)
  return {
    ttlMs: parseDurationMs(ttl ?? '') ?? defaultTtlMs,
    scope,
    collapseMs: parseDurationMs(collapseTimeout ?? '') ?? defaultCollapseMs,
    ...(compared && { semantic: compared }),
  }
}

/** Returns undefined if the embeddings backend does not exist: only answers to equal requests are served then. */
function semanticOf(
  spec: NonNullable<AnswerCacheSpec['semantic']>,
  references: References,
  guards: GuardCompiler,
): SemanticConfig | undefined {
  const target = references.backend(spec.backendRef)
  if (typeof target === 'string') {
    guards.remark('cache.semantic.backendRef', target)
    return undefined
  }
  return {
    target,
    model: spec.model,
    ...(spec.dimensions !== undefined && { dimensions: spec.dimensions }),
    threshold: spec.threshold ?? defaultThreshold,
    maxEntries: spec.maxEntries ?? defaultEntries,
    timeoutMs: parseDurationMs(spec.timeout ?? '') ?? defaultEmbeddingMs,
  }
}

/** If a guard cannot be enforced, the backend rejects all requests, so that nothing passes unguarded. */
function compile(spec: BackendAiSpec, references: References): Compiled<BackendAiConfig> {
  const { prompt, promptGuard, defaults, overrides, modelAliases, promptCaching, routes, cache } =
    spec
  const guards = new GuardCompiler(references)
  const caching = promptCaching && {
    cacheSystem: promptCaching.cacheSystem ?? true,
    cacheMessages: promptCaching.cacheMessages ?? true,
    cacheTools: promptCaching.cacheTools ?? false,
    minTokens: promptCaching.minTokens ?? 1024,
  }
  const config: BackendAiConfig = {
    ...guards.compileAll(promptGuard ?? {}),
    ...(prompt && { prompt }),
    ...(defaults && { defaults }),
    ...(overrides && { overrides }),
    ...(modelAliases && { modelAliases }),
    ...(caching && { caching }),
    ...(routes && { routes }),
    ...(cache && { cache: cacheOf(cache, references, guards) }),
  }
  for (const [ending, type] of Object.entries(routes ?? {})) {
    const message = unguardedTypes.get(type)
    if (promptGuard === undefined || message === undefined) continue
    guards.remark(`routes[${JSON.stringify(ending)}]`, message)
  }
  return { config, problems: guards.problems, secrets: guards.secrets }
}

/** Settings of language models. It contains guards, so all requests are rejected if it is invalid. */
export const backendAi = definePolicy({
  section: 'backend',
  field: 'ai',
  schema: backendAiSchema,
  doc: 'Settings for language models. They apply to backends of type ai only.',
  security: true,
  compile,
  apply: () => import('./apply.ts'),
})
