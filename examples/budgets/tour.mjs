// Spends a budget of the example with many requests at once, kills the gateway, and adds to the budget.

const body = JSON.stringify({
  model: 'gpt-4o-mini',
  messages: [{ role: 'user', content: 'How are you?' }],
})

/** Asks until the answer is true; gives up after some time. */
async function until(isTrue) {
  for (let tries = 0; tries < 100 && !(await isTrue()); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/**
 * `gateway.kill` ends the gateway as a power failure does, `gateway.start` starts it again, and `gateway.run` runs a
 * command of `sluice budgets`. `print` gets a line about each step. Resolves with what came back.
 */
export async function tour(base, gateway, print) {
  const ask = (key) =>
    fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body,
    })
  const statusOf = async (key) => {
    const response = await ask(key)
    await response.text()
    return response.status
  }

  const answers = await Promise.all(Array.from({ length: 200 }, () => ask('key-of-ann')))
  const texts = await Promise.all(answers.map((answer) => answer.text()))
  const admitted = answers.filter(({ status }) => status === 200).length
  const refusal = JSON.parse(texts[answers.findIndex(({ status }) => status === 429)]).error.message
  print(`200 chats of the sales team at once, which may have 3 a day: ${admitted} were admitted`)
  print(`the others were refused:\n  ${refusal}`)

  // A killed process loses what it has not reported, which is at most what it has charged in 200 ms.
  await until(async () => {
    const { budgets } = JSON.parse(await gateway.run('list', '--values', '-o', 'json'))
    return budgets.some(({ budget, spent }) => budget === 'default/chats' && spent === '3')
  })
  await gateway.kill()
  await gateway.start()
  const afterKill = await statusOf('key-of-ann')
  print(`the gateway was killed and started again; another chat of the sales team: ${afterKill}`)
  const other = await statusOf('key-of-bob')
  print(`a chat of the research team: ${other}`)

  await gateway.run('adjust', 'chats', '--value', 'sales', '--by', '1', '--reason', 'a demo')
  let adjusted
  await until(async () => {
    adjusted = await statusOf('key-of-ann')
    return adjusted === 200
  })
  print(`with one more chat by \`sluice budgets adjust\`: ${adjusted}`)

  const balances = await gateway.run('list', '--values')
  print(`what is spent, from the ledger:\n${balances.trimEnd().replaceAll(/^/gm, '  ')}`)
  return { admitted, refusal, afterKill, other, adjusted, balances }
}
