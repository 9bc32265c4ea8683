/** Vendor C: Anthropic. Its own format is messages. */

import { vendorKeyPlaces } from '../../../../../engines/auth/vendor-keys.ts'
import { servedAsMessages } from '../../../../../engines/messages/formats/invoke-model/index.ts'
import { storedCollections } from '../../../../../engines/messages/stored/collections.ts'
import { foreignPlan } from '../foreign-plan.ts'
import { bearerToken, below, type Provider } from '../provider.ts'

const systemName = 'anthropic'
const messagesVersion = '2023-06-01'

const keyPrefix = 'sk-ant-'
/** Prefix of user tokens, which stay bearer tokens, unlike API keys. */
const userTokenPrefix = 'sk-ant-oat'

const provider: Provider = {
  keyPlaces: vendorKeyPlaces.vendorC,
  isOwnKey: (token) => token.startsWith(keyPrefix),
  systemName,
  defaultHost: () => 'api.anthropic.com',
  plan(route, _model, config) {
    const path = below('messages', config)
    switch (route) {
      case 'Messages':
        return { kind: 'native', path }
      case 'InvokeModel':
        return { ...servedAsMessages, path }
      case 'VendorCTokenCount':
        return { kind: 'native', path: `${path}/count_tokens` }
      default:
        return foreignPlan(route, systemName, {
          chat: { kind: 'translated', path, format: 'messages' },
        })
    }
  },
  storedPath: (name, config) =>
    name === 'files' || storedCollections[name].errors === 'anthropic'
      ? below(name, config)
      : undefined,
  modelsPath: (config) => below('models', config),
  adaptHeaders(headers) {
    const token = bearerToken(headers)
    if (token !== undefined && !token.startsWith(userTokenPrefix)) {
      headers.set('x-api-key', token)
      headers.remove('authorization')
    }
    headers.set('anthropic-version', messagesVersion)
    // The provider rejects requests with headers that browsers send.
    for (const [name] of [...headers.entries()]) {
      if (/^(?:origin$|access-control-request-|sec-fetch-)/i.test(name)) headers.remove(name)
    }
  },
}

export default provider
