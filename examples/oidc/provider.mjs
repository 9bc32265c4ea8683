// An OpenID provider with two users, ann (group sales) and bob (group support). Any password is accepted.
import Provider from 'oidc-provider'

const groups = { ann: 'sales', bob: 'support' }
const api = 'https://shop.example.com/orders'

const provider = new Provider('http://127.0.0.1:9106', {
  clients: [
    {
      client_id: 'shop-app',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/signed-in'],
    },
  ],
  cookies: { keys: ['only-for-this-example'] },
  findAccount: (_, id) =>
    id in groups ? { accountId: id, claims: () => ({ sub: id, group: groups[id] }) } : undefined,
  extraTokenClaims: (_, { accountId }) => ({ group: groups[accountId] }),
  features: {
    // Access tokens are JWTs for the API.
    resourceIndicators: {
      enabled: true,
      defaultResource: () => api,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'orders',
        audience: api,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
})
provider.listen(9106, '127.0.0.1', () => console.log('ready'))
