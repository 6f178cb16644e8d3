import { expect } from 'chai';
import { Events } from '../../src/util/events.ts';

interface Map {
  readonly began: { readonly name: string };
  readonly ended: number;
}

describe('events', () => {
  let failures: string[];
  let events: Events<Map>;

  beforeEach(() => {
    failures = [];
    events = new Events<Map>((event, error) => failures.push(`${event}: ${String(error)}`));
  });

  it('reach every listener of their name, in the order of subscription, and no other', () => {
    const heard: string[] = [];
    events.on('began', ({ name }) => heard.push(`one ${name}`));
    events.on('ended', (code) => heard.push(`ended ${code}`));
    events.on('began', ({ name }) => heard.push(`two ${name}`));
    events.emit('began', { name: 'x' });
    expect(heard).to.deep.equal(['one x', 'two x']);
  });

  it('reach the others, and go back to the one who emits, when a listener throws', () => {
    const heard: number[] = [];
    events.on('ended', () => {
      throw new Error('broken');
    });
    events.on('ended', (code) => heard.push(code));
    events.emit('ended', 3);
    expect(heard).to.deep.equal([3]);
    expect(failures).to.deep.equal(['ended: Error: broken']);
  });

  it('reach a listener no more whose subscription ended, even during an event', () => {
    const heard: string[] = [];
    const endTwo = events.on('ended', () => heard.push('two'));
    events.on('ended', () => {
      heard.push('three');
      endTwo();
      events.on('ended', () => heard.push('late'));
    });
    events.emit('ended', 1);
    expect(heard).to.deep.equal(['two', 'three']);
    heard.length = 0;
    events.emit('ended', 2);
    expect(heard).to.deep.equal(['three', 'late']);
  });
});
