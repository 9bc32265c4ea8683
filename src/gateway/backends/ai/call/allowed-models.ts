/** Which models the API key of the client may use. */
import { type JsonObject, stringAt } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { modelOf } from '../../../../engines/messages/request/body.ts'
import { namedModels } from '../../../../engines/messages/request/named-models.ts'
import { pinnedModel } from '../../../../engines/messages/request/outgoing.ts'
import {
  type AllowedNames,
  allowedText,
  forwardingExtensions,
} from '../../../../ground/exchange/forwarding.ts'
import type { ModelCall } from './model-call.ts'
import type { ProviderEndpoint } from './provider-endpoint.ts'

/** Returns undefined if the client may use every model. */
export function allowedModelsOf({ context }: ModelCall): AllowedNames | undefined {
  return context.exchange.extensions.get(forwardingExtensions.allowedModels) as
    | AllowedNames
    | undefined
}

/**
 * Checks the model that is sent to the provider. `named` is the name in the client's request.
 * @throws LlmError 403 if the key may not use the model
 */
export function needAllowedModel(
  call: ModelCall,
  sent: string | undefined,
  named: string | undefined,
): void {
  if (mayUseModel(call, sent, named)) return
  // The client may use the model that it has named, but not the one that the backend has in its place.
  const allowed = allowedModelsOf(call)
  const mayNamed = named !== undefined && allowed?.allows(named) === true
  const refused = (mayNamed ? sent : named) || sent || '(none)'
  const known = allowed === undefined ? '' : `; ${allowedText(allowed)}`
  throw new ForbiddenModelError(`the API key may not use the model ${refused}${known}`)
}

/** The client's API key may not use the model of the chosen provider. */
export class ForbiddenModelError extends LlmError {
  constructor(message: string) {
    super(403, message)
    this.name = 'ForbiddenModelError'
  }
}

/** Returns whether the client's API key may use the model of a provider that has only one. */
export function mayUseProvider(call: ModelCall, { provider }: ProviderEndpoint): boolean {
  const sent = pinnedModel(provider.config)
  return sent === undefined || mayUseModel(call, sent, stringAt(call.clientBody?.fields, 'model'))
}

/**
 * Checks the models that a request names besides its own: fallbacks of vendors and routers, and models of tools.
 * @throws LlmError 403 if the key may not use one of them, or if one is not known
 */
export function needAllowedMembers(call: ModelCall, body: JsonObject): void {
  const allowed = allowedModelsOf(call)
  if (allowed === undefined) return
  for (const { path, model } of namedModels(body)) {
    if (model !== undefined && allowsModel(allowed, model)) continue
    const problem =
      model === undefined
        ? `the API key is limited to certain models, and the gateway cannot read those in ${path}`
        : `the API key may not use the model ${model.slice(0, maxModelName)} in ${path}`
    throw new LlmError(403, problem)
  }
}

/** Maximum number of characters of a name that an error repeats. */
const maxModelName = 200

/**
 * Returns whether the client's API key may use a model that it calls `named`, and that the provider gets as `sent`.
 * If the client names an alias, the key may have the alias or the model itself.
 */
export function mayUseModel(
  call: ModelCall,
  sent: string | undefined,
  named: string | undefined,
): boolean {
  const allowed = allowedModelsOf(call)
  if (allowed === undefined || (sent !== undefined && allowsModel(allowed, sent))) return true
  // A model that is served under a name is reached by this name, whatever the provider calls it.
  if (named !== undefined && call.selection !== undefined) {
    return sent === sentModel(call, named) && allowsModel(allowed, named)
  }
  const isAlias = named !== undefined && modelOf(named, call.policy?.config.modelAliases) === sent
  return isAlias && allowsModel(allowed, named)
}

/** What routers take for the name of a preset at the end of a model. */
const presetPart = /^(.+?)@preset\/(.*)$/is

/** A preset of a router may choose other models than the one before it, so that the key must have both. */
function allowsModel(allowed: AllowedNames, name: string): boolean {
  const [, model, preset] = presetPart.exec(name) ?? []
  if (model === undefined || preset === undefined) return allowed.allows(name)
  return allowed.allows(model) && allowed.allows(preset)
}

/** Returns the model that the gateway has chosen for the name in the request. */
const sentModel = ({ config }: ModelCall, named: string): string =>
  (config && pinnedModel(config)) ?? named

/** @throws LlmError 403 if the key is limited to certain models, because the gateway does not read the request */
export function needNoModelLimit(call: ModelCall): void {
  if (allowedModelsOf(call) === undefined) return
  throw new LlmError(
    403,
    'the API key is limited to certain models, and the gateway cannot read the model of requests to this path',
  )
}
