// An OpenID provider that signs everybody in as ann of the group sales, without a form.
import Provider from 'oidc-provider'

const provider = new Provider('http://127.0.0.1:9107', {
  clients: [
    {
      client_id: 'shop',
      client_secret: 'only-for-this-example',
      redirect_uris: ['http://localhost:8080/oauth2/callback'],
      post_logout_redirect_uris: ['http://localhost:8080/'],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  cookies: { keys: ['only-for-this-example'] },
  claims: { openid: ['sub', 'group'] },
  conformIdTokenClaims: false,
  issueRefreshToken: () => true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, group: 'sales' }) }),
  interactions: { url: (_, { uid }) => `/agree/${uid}` },
  features: { devInteractions: { enabled: false } },
})

provider.use(async (context, next) => {
  if (!context.path.startsWith('/agree/')) return next()
  const { req, res } = context
  const { prompt, params } = await provider.interactionDetails(req, res)
  context.respond = false
  const grant = new provider.Grant({ accountId: 'ann', clientId: params.client_id })
  grant.addOIDCScope('openid')
  const result =
    prompt.name === 'login'
      ? { login: { accountId: 'ann' } }
      : { consent: { grantId: await grant.save() } }
  await provider.interactionFinished(req, res, result, { mergeWithLastSubmission: true })
})
provider.listen(9107, '127.0.0.1', () => console.log('ready'))
