/** How people sign in to a console that has no token in its URL. */
import { useState } from 'preact/hooks'
import { beginSignIn } from '../source/server.ts'
import { needsSignIn, signIn } from '../state/start.ts'

export const SignInForm = () => (
  <section class="card open">
    <h1>Sign in</h1>
    {needsSignIn.value === 'oidc' ? <ProviderButton /> : <TokenForm />}
  </section>
)

const ProviderButton = () => (
  <>
    <p>At the provider of your organization. Your groups there say what you may see and do.</p>
    <button type="button" class="button" onClick={beginSignIn}>
      Sign in
    </button>
    <p class="quiet">The session is of this tab. It ends when you sign out, or after 8 hours.</p>
  </>
)

function TokenForm() {
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    setProblem('')
    signIn(token.trim()).catch((error: Error) => setProblem(error.message))
  }
  return (
    <>
      <p>
        With a token of the cluster whose user may <code>get</code> <code>consoles.sluice.dev</code>
        :
      </p>
      <pre>kubectl create token NAME --audience sluice-console</pre>
      <form onSubmit={submit}>
        <label>
          Token{' '}
          <input
            type="password"
            autocomplete="off"
            value={token}
            onInput={({ currentTarget }) => setToken(currentTarget.value)}
          />
        </label>{' '}
        <button type="submit" class="button" disabled={token.trim() === ''}>
          Sign in
        </button>
      </form>
      {problem !== '' && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <p class="quiet">The token stays in this tab, and is only sent to the controller.</p>
    </>
  )
}
