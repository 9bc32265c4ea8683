/** The form in which people sign in to the console of a controller with a token of the cluster. */
import { useState } from 'preact/hooks'
import { signIn } from '../state/start.ts'

export function SignInForm() {
  const [token, setToken] = useState('')
  const [problem, setProblem] = useState('')
  const submit = (event: Event) => {
    event.preventDefault()
    setProblem('')
    signIn(token.trim()).catch((error: Error) => setProblem(error.message))
  }
  return (
    <section class="card open">
      <h1>Sign in</h1>
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
    </section>
  )
}
