/** Converts the backends of routes of the standalone agentgateway. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { keyAuth, providerOf } from '../models.ts'
import { addBackend, addStatic, parseAddress } from '../targets.ts'
import { hostOf, type RouteScene } from './standalone-scene.ts'

/** References to the backends of a route, with their weights. */
export function backendRefs(route: SourceField, scene: RouteScene): Fields[] {
  const routeKey = route.at('policies', 'backendAuth')
  const refs: Fields[] = []
  for (const backend of route.items('backends')) {
    const weight = backend.number('weight')
    const own = backend.at('policies', 'backendAuth')
    const key = own.isSet ? own : routeKey
    if (backend.has('ai')) readModels(backend.get('ai'), key, scene)
    else {
      const ref = backendOf(backend, key, scene)
      if (ref !== undefined) refs.push(compact({ ...ref, weight }))
    }
  }
  return [...refs, ...modelRefs(route, scene)]
}

/** All models of a route are one backend, whose groups are tried in order. */
function modelRefs(route: SourceField, { plan, name, result }: RouteScene): Fields[] {
  const models = plan.modelBackend()
  return models === undefined ? [] : [addBackend(result, name, models, route)]
}

function backendOf(
  backend: SourceField,
  routeKey: SourceField,
  scene: RouteScene,
): Fields | undefined {
  const { result } = scene
  if (backend.has('host')) {
    const address = hostOf(backend.get('host'))
    const policies = compact({ ...scene.backend, auth: keyOf(routeKey, scene) })
    if (address === undefined) return undefined
    const a2a = [scene.plan.a2a, backend.at('policies', 'a2a')].find((one) => one?.isSet)
    if (a2a !== undefined) {
      a2a.take()
      return addBackend(result, scene.name, { a2a: address, policies: filled(policies) }, backend)
    }
    return addStatic(result, { ...address, isTls: false }, backend, policies)
  }
  if (backend.has('mcp')) return toolsOf(backend.get('mcp'), scene)
  return backend.refuse('lost', 'this type of backend is not converted')
}

/** A backend is one provider, or groups of providers of which the first that works is used. */
function readModels(ai: SourceField, routeKey: SourceField, scene: RouteScene): void {
  const groups = ai.has('groups')
    ? ai.items('groups').map((group) => group.items('providers'))
    : [[ai]]
  const models = groups.map((providers) =>
    providers.flatMap((provider): Fields[] => {
      const model = modelOf(provider, routeKey, scene)
      return model === undefined ? [] : [model]
    }),
  )
  scene.plan.models = [...(scene.plan.models ?? []), ...models]
}

const providerNames: Readonly<Record<string, string>> = {
  openAI: 'openai',
  azureOpenAI: 'azure-openai',
  azure: 'azure-openai',
  anthropic: 'anthropic',
  gemini: 'gemini',
  vertex: 'vertex-ai',
  bedrock: 'bedrock',
}

function modelOf(field: SourceField, routeKey: SourceField, scene: RouteScene): Fields | undefined {
  field.ignore('name')
  const [[kind = '', settings] = []] = field.entries('provider')
  const override = field.has('hostOverride') ? hostOf(field.get('hostOverride')) : undefined
  const isTls = scene.backend.tls !== undefined || override?.port === 443
  const base = override && `http${isTls ? 's' : ''}://${override.host}:${override.port}`
  const own = [field.at('policies', 'backendAuth'), field.get('backendAuth')].find(
    ({ isSet }) => isSet,
  )
  return providerOf(
    {
      provider: entryOf(providerNames, kind) ?? kind,
      model: settings?.text('model'),
      base: base ?? azureBase(settings),
      apiVersion: settings?.text('apiVersion'),
      project: settings?.text('projectId'),
      region: settings?.text('region'),
      auth: keyOf(own ?? routeKey, scene),
    },
    field,
  )
}

const azureBase = (settings: SourceField | undefined): string | undefined => {
  const host = settings?.text('host')
  return host === undefined ? undefined : `https://${host}`
}

/** The key of `backendAuth`: a text, `$VARIABLE`, or a file. */
function keyOf(auth: SourceField, { name, result }: RouteScene): Fields | undefined {
  if (!auth.isSet) return undefined
  if (auth.has('passthrough')) {
    auth.take('passthrough')
    return { passthrough: {} }
  }
  const key = auth.get('key')
  const value = typeof key.value === 'string' ? key.text() : key.text('value')
  const file = key.isSet && typeof key.value !== 'string' ? key.text('file') : undefined
  const variable = /^\$\{?(\w+)\}?$/.exec(value ?? '')?.[1] ?? (file && `FILE_${file}`)
  return keyAuth(result, name, variable === undefined ? { value } : { variable }, auth)
}

/** MCP servers over HTTP, and commands. */
function toolsOf(mcp: SourceField, { name, result }: RouteScene): Fields | undefined {
  const mode = mcp.text('statefulMode')
  const targets = mcp.items('targets').flatMap((target) => targetOf(target) ?? [])
  if (targets.length === 0) return undefined
  const sessionRouting = mode === 'stateless' ? 'Stateless' : undefined
  const spec = { mcp: compact({ sessionRouting, targets }) }
  return addBackend(result, name, spec, mcp)
}

function targetOf(target: SourceField): Fields | undefined {
  const label = target.text('name') ?? 'target'
  const name = label.toLowerCase().replace(/[^a-z0-9-]+/g, '-')
  const stdio = target.get('stdio')
  if (stdio.isSet) return commandOf(name, stdio)
  const isSse = target.has('sse')
  const server = isSse ? target.get('sse') : target.get('mcp')
  if (!server.isSet) {
    return target.refuse(
      'lost',
      'only MCP servers over HTTP and commands are converted, not OpenAPI',
    )
  }
  const text = server.text('host') ?? ''
  const url = parseAddress(text)
  const host = url?.host ?? text
  const port = url?.port ?? server.number('port')
  const path = server.text('path') ?? (url && url.path !== '' ? url.path : undefined)
  if (host === '' || port === undefined) {
    return server.report('lost', 'needs a host and a port, or a URL')
  }
  const protocol = isSse ? 'SSE' : undefined
  const policies = url?.isTls === true ? { tls: {} } : undefined
  return { name, static: compact({ host, port, path, protocol, policies }) }
}

/** A command gets the environment that is written; agentgateway passes on its own unless `clear_env` is set. */
function commandOf(name: string, stdio: SourceField): Fields {
  const program = stdio.text('cmd') ?? ''
  const args = stdio.items('args').flatMap((one) => one.text() ?? [])
  const env = stdio.entries('env').flatMap(([variable, field]) => {
    const value = field.text()
    return value === undefined ? [] : [{ name: variable, value }]
  })
  stdio.ignore('clear_env')
  stdio.report(
    'changed',
    'commands run only with --stdio-servers true, without network and with the written environment',
  )
  return {
    name,
    stdio: compact({ command: [program, ...args], env: env.length > 0 ? env : undefined }),
  }
}
