/** Wraps `notify` to skip repeated texts. An empty text is not reported: the problem is gone. */
export function onlyChanges(notify: (text: string) => void): (text: string) => void {
  let last = ''
  return (text) => {
    if (text !== '' && text !== last) notify(text)
    last = text
  }
}
