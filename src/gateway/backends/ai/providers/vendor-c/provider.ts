/** Vendor C: Anthropic. Its own format is messages. */
import { vendorKeyPlaces } from '../../../../../engines/auth/vendor-keys.ts'
import { unsupportedRoute } from '../../../../../engines/messages/llm-error.ts'
import { bearerToken, type Provider } from '../provider.ts'

const messagesVersion = '2023-06-01'

const keyPrefix = 'sk-ant-'
/** Prefix of user tokens, which stay bearer tokens, unlike API keys. */
const userTokenPrefix = 'sk-ant-oat'

const provider: Provider = {
  keyPlaces: vendorKeyPlaces.vendorC,
  isOwnKey: (token) => token.startsWith(keyPrefix),
  systemName: 'anthropic',
  defaultHost: () => 'api.anthropic.com',
  plan(route) {
    switch (route) {
      case 'Messages':
        return { kind: 'native', path: '/v1/messages' }
      case 'VendorCTokenCount':
        return { kind: 'native', path: '/v1/messages/count_tokens' }
      case 'Embeddings':
        throw unsupportedRoute(route, 'anthropic')
      default:
        return { kind: 'translated', path: '/v1/messages', format: 'messages' }
    }
  },
  modelsPath: () => '/v1/models',
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
