/** `sluice filter-config` prints the configuration of sluice-filter.wasm from manifests. */
import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { stringify } from 'yaml'
import { formatProblem, isUnreadable } from '../../../control/watch/source-problem.ts'
import { revealHeaders } from '../../../ground/model/inline-secrets.ts'
import type { HeaderChanges, VersionedResource } from '../../../ground/model/resources.ts'
import { foldRecording, readManifests } from '../recording/recording.ts'
import { type CommandResult, exitCode, type Output, UsageError } from '../shared/output.ts'
import { filterRules } from './rules.ts'
import type { FilterConfig, FilterGap, FilterRule } from './types.ts'

export interface FilterConfigOptions {
  readonly file: readonly string[]
  readonly output: 'json' | 'envoy' | 'wasmplugin' | 'envoygateway'
  /** The only Gateway, as `namespace/name`; all if omitted. */
  readonly gateway?: string
  /** Where Envoy finds the module: a path, or a URL of `https`, `oci` or `file`. */
  readonly module: string
}

const name = 'sluice'

/** Kubernetes reads YAML 1.1. Long texts stay on one line. */
const yamlForm = { version: '1.1', aliasDuplicateObjects: false, lineWidth: 0 } as const

/** A filter of Envoy's HTTP connection manager. Headers wait until the body is judged. */
function envoyFilter(config: FilterConfig, module: string): object {
  const text = JSON.stringify({ holdHeaders: true, ...config } satisfies FilterConfig)
  return {
    name,
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm',
      config: {
        name,
        root_id: name,
        failure_policy: 'FAIL_CLOSED',
        allow_on_headers_stop_iteration: true,
        configuration: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: text },
        vm_config: {
          vm_id: name,
          runtime: 'envoy.wasm.runtime.v8',
          code: { local: { filename: module } },
        },
      },
    },
  }
}

/** Manifests attach the filter to one Gateway. @throws UsageError if there are several */
function targetOf(gateways: readonly string[]) {
  if (gateways.length > 1) {
    throw new UsageError(`choose one of ${gateways.join(', ')} with --gateway`)
  }
  const [namespace = 'default', gatewayName = ''] = gateways[0]?.split('/') ?? []
  const targetRefs = [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: gatewayName }]
  return { metadata: { name, namespace }, targetRefs }
}

function wasmPlugin(config: FilterConfig, module: string, gateways: readonly string[]): object {
  const { metadata, targetRefs } = targetOf(gateways)
  const url = module.includes('://') ? module : `file://${module}`
  return {
    apiVersion: 'extensions.istio.io/v1alpha1',
    kind: 'WasmPlugin',
    metadata,
    spec: {
      targetRefs,
      url,
      phase: 'STATS',
      failStrategy: 'FAIL_CLOSE',
      pluginName: name,
      pluginConfig: config,
    },
  }
}

function extensionPolicy(
  config: FilterConfig,
  module: string,
  gateways: readonly string[],
): object {
  const { metadata, targetRefs } = targetOf(gateways)
  const sha256 = existsSync(module) ? { sha256: hash('sha256', readFileSync(module)) } : {}
  const code = module.startsWith('oci://')
    ? { type: 'Image', image: { url: module.slice('oci://'.length) } }
    : { type: 'HTTP', http: { url: module, ...sha256 } }
  return {
    apiVersion: 'gateway.envoyproxy.io/v1alpha1',
    kind: 'EnvoyExtensionPolicy',
    metadata,
    spec: {
      targetRefs,
      wasm: [{ name, rootID: name, failOpen: false, code, config }],
    },
  }
}

function render(
  config: FilterConfig,
  { output, module }: FilterConfigOptions,
  gateways: readonly string[],
): string {
  switch (output) {
    case 'json':
      return JSON.stringify(config, null, 2)
    case 'envoy':
      return stringify(envoyFilter(config, module), yamlForm).trimEnd()
    case 'wasmplugin':
      return stringify(wasmPlugin(config, module, gateways), yamlForm).trimEnd()
    case 'envoygateway':
      return stringify(extensionPolicy(config, module, gateways), yamlForm).trimEnd()
  }
}

const lineOf = ({ object, message, isProtection }: FilterGap): string =>
  `${isProtection ? 'error' : 'note'}: ${object}: ${message}`

/** Returns the rules with the credentials that their header modifiers set, since the filter gets no secrets. */
function withCredentials(
  rules: readonly FilterRule[],
  resources: readonly VersionedResource[] = [],
): FilterRule[] {
  const values = new Map(
    resources.flatMap(({ resource }) =>
      resource.type === 'secret' ? [[resource.digest, resource.value] as const] : [],
    ),
  )
  const secrets = { value: (digest: string) => values.get(digest) ?? new Uint8Array() }
  const reveal = (changes: HeaderChanges) => revealHeaders(changes, secrets)
  return rules.map((rule) => {
    const { request, response } = rule.headerModifiers ?? {}
    if (request === undefined && response === undefined) return rule
    const headerModifiers = {
      ...(request && { request: reveal(request) }),
      ...(response && { response: reveal(response) }),
    }
    return { ...rule, headerModifiers }
  })
}

/** The exit code is 1 if a protection would be lost or an object is invalid, and 2 if a file is unreadable. */
export async function filterConfig(
  options: FilterConfigOptions,
  report: Output['report'],
): Promise<CommandResult> {
  const recording = await readManifests(options.file)
  const fold = await foldRecording(recording)
  const errors = recording.problems.filter(({ severity }) => severity === 'error')
  for (const problem of errors) report(formatProblem(problem))
  const { rules, gaps, gateways } = filterRules(fold, options.gateway)
  for (const gap of gaps) report(lineOf(gap))
  if (rules.length === 0) report('error: no HTTP route of a Gateway was found')
  const isComplete =
    rules.length > 0 && errors.length === 0 && gaps.every(({ isProtection }) => !isProtection)
  const text = render({ rules: withCredentials(rules, recording.secrets) }, options, gateways)
  const code = isComplete ? exitCode.success : exitCode.negative
  return {
    text: () => [text],
    exitCode: errors.some(isUnreadable) ? exitCode.usage : code,
  }
}
