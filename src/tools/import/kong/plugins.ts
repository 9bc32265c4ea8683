/** Converts plugins of Kong: the table of readers, and those for authentication and access. */
import { entryOf } from '../../../ground/base/json-object.ts'
import { compact } from '../conversion.ts'
import { isProtection, type SourceField } from '../field.ts'
import { quote, quoteAll, sourceIn, toGateway } from '../targets.ts'
import { aiPlugins } from './ai-plugins.ts'
import { headerPlugins } from './header-plugins.ts'
import { limitPlugins } from './limit-plugins.ts'
import type { PluginReader, PluginScene } from './plugin.ts'

/** Plugins that observe requests only. */
const observing =
  /^(prometheus|datadog|statsd|syslog|zipkin|opentelemetry|loggly|(file|http|tcp|udp|kafka)-log)$/

/** Adds the settings of a plugin to the plan of a route. */
export function applyPlugin(plugin: SourceField, scene: PluginScene): void {
  const name = plugin.text('name') ?? ''
  const reader = entryOf(readers, name)
  if (reader === undefined) reportPlugin(plugin, `the plugin ${name} has no counterpart`)
  else reader(plugin.get('config'), scene)
}

/** Reports a plugin. A plugin that is not known to observe only may protect something. */
export function reportPlugin(plugin: SourceField, reason: string): void {
  const name = plugin.text('name') ?? ''
  const isHarmless =
    observing.test(name) || /^(proxy-cache|ai-semantic-cache|correlation-id|grpc-web)/.test(name)
  plugin.refuse(isHarmless && !isProtection(name) ? 'lost' : 'protection', reason)
}

/** Anonymous access lets requests without credentials pass. */
const modeOf = (config: SourceField) => (config.has('anonymous') ? { mode: 'Optional' } : {})

/** Copies a key from Kong's header or query parameter to the header that Sluice reads. */
function keyAuth(config: SourceField, { plan, consumers, result }: PluginScene): void {
  config.ignore('run_on_preflight', 'realm')
  plan.traffic.apiKeyAuthentication = { ...modeOf(config), secretRef: consumers.apiKeys() }
  const names = config.list('key_names') ?? ['apikey']
  const places = [
    ...(config.flag('key_in_header') === false
      ? []
      : names.map((key) => `request.headers[${quote(key.toLowerCase())}]`)),
    ...(config.flag('key_in_query') === false
      ? []
      : names.map((key) => `request.uri.query(${quote(key)})[0]`)),
  ]
  if (config.flag('key_in_body') === true) {
    config.get('key_in_body').report('changed', 'a key in the body is not read; it is refused')
  }
  if (config.flag('hide_credentials') === true) plan.requestHeaders.remove.push(...names)
  const found = `coalesce(${[...places.map((place) => `"Bearer " + ${place}`), 'request.headers["authorization"]'].join(', ')})`
  const transformation = { request: { set: [{ name: 'authorization', value: found }] } }
  // The policy applies to the whole Gateway, since PreRouting policies cannot belong to a route.
  result.policy(
    'api-key-places',
    [toGateway],
    { traffic: { phase: 'PreRouting', transformation } },
    config,
  )
  config.report('changed', `keys of ${names.join(', ')} are copied to Authorization, on all routes`)
}

function basicAuth(config: SourceField, { plan, consumers }: PluginScene): void {
  config.ignore('realm')
  plan.traffic.basicAuthentication = { ...modeOf(config), secretRef: consumers.passwords() }
  if (config.flag('hide_credentials') === true) plan.requestHeaders.remove.push('authorization')
}

function jwt(config: SourceField, { plan, consumers }: PluginScene): void {
  config.ignore('claims_to_verify', 'run_on_preflight', 'header_names', 'realm')
  const providers = consumers.tokenProviders()
  if (providers.length === 0) {
    plan.authorization.push({ action: 'Require', expressions: ['false'] })
    config.report('changed', 'no consumer has a usable key, so every request is refused')
  } else plan.traffic.jwtAuthentication = { ...modeOf(config), providers }
}

/** Older versions of Kong have other names for the lists. */
const lists = [
  ['Require', ['allow', 'whitelist']],
  ['Deny', ['deny', 'blacklist']],
] as const

/** Groups of API keys are in their metadata; those of users are known from the configuration. */
function acl(config: SourceField, { plan, consumers }: PluginScene): void {
  config.ignore('hide_groups_header')
  for (const [action, names] of lists) {
    const groups = names.flatMap((name) => config.texts(name))
    if (groups.length === 0) continue
    const users = consumers.usersIn(groups)
    const expressions = [
      `apiKey.groups.exists(group, group in ${quoteAll(groups)})`,
      ...(users.length > 0 ? [`basicAuth.username in ${quoteAll(users)}`] : []),
    ]
    plan.authorization.push({ action, expressions })
  }
}

function ipRestriction(config: SourceField, { plan }: PluginScene): void {
  config.ignore('status', 'message')
  for (const [action, names] of lists) {
    for (const field of names.map((name) => config.get(name)).filter(({ isSet }) => isSet)) {
      const condition = sourceIn(field.texts())
      if (condition === undefined) field.report('protection', 'is not a list of addresses')
      else plan.authorization.push({ action, expressions: [condition] })
    }
  }
}

function cors(config: SourceField, { plan }: PluginScene): void {
  const origins = config.list('origins') ?? ['*']
  const plain = origins.filter((origin) => /^\*$|^https?:\/\/[\w.:*-]+$/.test(origin))
  if (plain.length < origins.length) {
    config.get('origins').report('changed', 'origins that are patterns are not allowed')
  }
  config.ignore('preflight_continue', 'private_network')
  plan.traffic.cors = compact({
    allowOrigins: plain,
    allowMethods: config.list('methods') ?? ['*'],
    allowHeaders: config.list('headers') ?? ['*'],
    exposeHeaders: config.list('exposed_headers'),
    allowCredentials: config.flag('credentials'),
    maxAge: config.number('max_age'),
  })
}

function requestTermination(config: SourceField, { plan }: PluginScene): void {
  config.ignore('content_type')
  const message = config.text('message')
  const body =
    config.text('body') ?? (message === undefined ? undefined : JSON.stringify({ message }))
  plan.traffic.directResponse = compact({ status: config.number('status_code') ?? 503, body })
}

const readers: Readonly<Record<string, PluginReader>> = {
  acl,
  'basic-auth': basicAuth,
  cors,
  'ip-restriction': ipRestriction,
  jwt,
  'key-auth': keyAuth,
  'request-termination': requestTermination,
  ...aiPlugins,
  ...headerPlugins,
  ...limitPlugins,
}
