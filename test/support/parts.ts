/**
 * Real parts that tests start or install: programs and CRDs that no npm package brings.
 * `test/assets/setup` makes them; a machine with Node alone has none of them, and then their tests
 * are skipped by name, and the last lines of the run give the reason. If
 * SLUICE_REQUIRE_PARTS=1 says that setup has succeeded, an absent part is a failure instead.
 */
import { accessSync, constants, existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { describe, it } from 'vitest'

/** Where each part is looked for: a program by its name, a folder by the variable that names it. */
const sources = {
  'nats-server': { program: 'nats-server' },
  redis: { variable: 'SLUICE_REDIS' },
  etcd: { program: 'etcd' },
  'kube-apiserver': { program: 'kube-apiserver' },
  kubectl: { program: 'kubectl' },
  helm: { program: 'helm' },
  'gateway-api-crds': { variable: 'SLUICE_GATEWAY_API_CRDS' },
  'inference-crds': { variable: 'SLUICE_INFERENCE_CRDS' },
  chromium: { program: 'chromium' },
  h2spec: { program: 'h2spec' },
  actionlint: { program: 'actionlint' },
  cc: { program: 'cc' },
  go: { program: 'go' },
  wazero: { variable: 'SLUICE_WAZERO' },
  python3: { program: 'python3' },
  'python-a2a': { variable: 'SLUICE_PYTHON_A2A' },
  'python-mcp': { variable: 'SLUICE_PYTHON_MCP' },
  'python-tools': { variable: 'SLUICE_PYTHON_TOOLS' },
  'javascript-hosts': { variable: 'SLUICE_JAVASCRIPT_HOSTS' },
  'python-wasmtime': { variable: 'SLUICE_PYTHON_WASMTIME' },
  cargo: { program: 'cargo' },
  'rust-wasmtime': { variable: 'SLUICE_RUST_WASMTIME' },
  envoy: { variable: 'SLUICE_ENVOY' },
  'zitadel-oidc': { program: 'zitadel-oidc' },
  keycloak: { variable: 'SLUICE_KEYCLOAK' },
  nginx: { program: 'nginx' },
  haproxy: { program: 'haproxy' },
  prometheus: { program: 'prometheus' },
  re2: { variable: 'SLUICE_RE2' },
  'mcp-conformance': { variable: 'SLUICE_MCP_CONFORMANCE' },
  'mcp-modern-conformance': { variable: 'SLUICE_MCP_MODERN_CONFORMANCE' },
  'mcp-sdks': { variable: 'SLUICE_MCP_SDKS' },
  'mcp-filesystem': { variable: 'SLUICE_MCP_FILESYSTEM' },
  'claude-code': { variable: 'SLUICE_CLAUDE_CODE' },
  codex: { variable: 'SLUICE_CODEX' },
  'gemini-cli': { variable: 'SLUICE_GEMINI_CLI' },
  opencode: { variable: 'SLUICE_OPENCODE' },
  'release-downloads': { variable: 'SLUICE_RELEASE_DOWNLOADS' },
} as const satisfies Record<string, { program: string } | { variable: string }>

export type PartName = keyof typeof sources

/** An absolute path, or the reason why the part is missing. */
export type Part =
  | { readonly found: true; readonly path: string }
  | { readonly found: false; readonly reason: string }

type Environment = Readonly<Record<string, string | undefined>>

declare module 'vitest' {
  interface TaskMeta {
    /** Why the tests of this suite were skipped; printed by absent-parts.ts when the run ends. */
    absentPart?: string
  }
}

/**
 * Finds a part: programs in the folder KUBEBUILDER_ASSETS, then on PATH; CRD folders by their
 * variable. A variable that is not set is read from what the last `test/assets/setup` wrote.
 */
export function findPart(name: PartName, environment: Environment = process.env): Part {
  const source = sources[name]
  const settings = { ...lastSetup(environment), ...environment }
  return 'program' in source
    ? findProgram(source.program, settings)
    : findFolder(name, source.variable, settings)
}

/** The path of a part that the caller knows to be there, as inside `describeWithParts`. */
export function partPath(name: PartName): string {
  const part = findPart(name)
  if (!part.found) throw new Error(part.reason)
  return part.path
}

/**
 * A `describe` whose tests need real parts. The tests are always collected, so that a skipped one
 * is reported under its own name; call `partPath` in hooks and tests, not in the body of `define`.
 */
export function describeWithParts(
  names: readonly PartName[],
  title: string,
  define: () => void,
  environment: Environment = process.env,
): void {
  const absent = names
    .map((name) => findPart(name, environment))
    .flatMap((part) => (part.found ? [] : [part.reason]))
  if (absent.length === 0) {
    describe(title, define)
    return
  }
  const reason = absent.join('; ')
  if (environment.SLUICE_REQUIRE_PARTS !== '1') {
    describe(title, { skip: true, meta: { absentPart: reason } }, define)
    return
  }
  describe(title, () => {
    it('has the parts that it needs', () => {
      throw new Error(`SLUICE_REQUIRE_PARTS=1, but ${reason}`)
    })
  })
}

function findProgram(program: string, environment: Environment): Part {
  const folders = [
    environment.KUBEBUILDER_ASSETS ?? '',
    ...(environment.PATH ?? '').split(delimiter),
  ]
  for (const folder of folders) {
    if (folder !== '' && isExecutable(join(folder, program))) {
      return { found: true, path: join(folder, program) }
    }
  }
  return { found: false, reason: `no ${program} in KUBEBUILDER_ASSETS or on PATH` }
}

function findFolder(name: PartName, variable: string, environment: Environment): Part {
  const path = environment[variable]
  if (path === undefined || path === '') {
    return { found: false, reason: `${name}: ${variable} is not set` }
  }
  return existsSync(path)
    ? { found: true, path }
    : { found: false, reason: `${name}: ${variable} names ${path}, which does not exist` }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The variables that the last setup wrote; empty if it never ran. PATH is left to the shell. */
function lastSetup(environment: Environment): Environment {
  const caches = environment.XDG_CACHE_HOME ?? join(environment.HOME ?? homedir(), '.cache')
  const file = join(environment.SLUICE_ASSETS ?? join(caches, 'sluice-assets'), 'env')
  if (!existsSync(file)) return {}
  const exported = readFileSync(file, 'utf8').matchAll(/^export (\w+)='([^']*)'$/gm)
  return Object.fromEntries([...exported].map(([, variable, value]) => [variable, value]))
}
