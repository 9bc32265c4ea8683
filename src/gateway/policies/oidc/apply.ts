/** Lets requests of signed-in users pass, and signs browsers in at an OpenID provider. */
import { hexDigest } from '../../../ground/base/digest.ts'
import { type OidcConfig, shape } from '../../sign-in/config.ts'
import { reservedPrefix } from '../../sign-in/cookies.ts'
import { keyringOf } from '../../sign-in/keyring.ts'
import { Provider } from '../../sign-in/provider.ts'
import { renewalsOf } from '../../sign-in/renewals.ts'
import { SessionGuard } from '../../sign-in/session-guard.ts'
import { type CookieNames, SignIn } from '../../sign-in/sign-in.ts'
import { SignOut } from '../../sign-in/sign-out.ts'
import { signedOutOf } from '../../sign-in/signed-out.ts'
import { clientSecretText } from '../../tokens/client-secret-text.ts'
import { sendOauth } from '../../tokens/oauth-transport.ts'
import type { PolicyApply } from '../define.ts'

const apply: PolicyApply<OidcConfig> = {
  shape,
  bind(config, callouts, secrets, host) {
    const names = namesOf(config, host.policy)
    const { clientSecret } = config
    const secret = clientSecret === undefined ? undefined : clientSecretText(clientSecret, secrets)
    const provider = new Provider(
      config,
      (url, request, target) => sendOauth(callouts, url, request, target),
      secret,
    )
    const signedOut = signedOutOf(config.issuer, config.clientId)
    return new SessionGuard({
      config,
      names,
      provider,
      keyring: keyringOf(config.keys, secrets, host),
      signIn: new SignIn(config, provider, names),
      signOut: new SignOut(config, provider, names, signedOut),
      signedOut,
      renewals: renewalsOf(
        names.context,
        host.policyBucket('renewals', { rate: 1, unit: 'Minutes', burst: 0, isKeyed: true }),
      ),
    })
  },
}

export default apply

/** Cookies of one policy, issuer or client never open as those of another. */
function namesOf({ issuer, clientId }: OidcConfig, policy: string): CookieNames {
  const context = JSON.stringify([policy, issuer, clientId])
  const suffix = hexDigest('sha256', context).slice(0, 10)
  return {
    session: `${reservedPrefix}s-${suffix}`,
    transaction: `${reservedPrefix}t-${suffix}-`,
    count: `${reservedPrefix}n-${suffix}`,
    context,
  }
}
