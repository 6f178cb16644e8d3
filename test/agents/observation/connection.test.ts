import { expect } from 'chai';
import { Connection } from '../../../src/agents/observation/connection.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const trouble = { code: 'plugin-failed', message: 'no route to host' };

describe('a connection', () => {
  let clock: ManualClock;
  let connection: Connection;
  let opened: number;

  beforeEach(() => {
    clock = new ManualClock();
    connection = new Connection('local:/pilots', clock, 120_000);
    opened = 0;
  });

  /** These two say whether the connection opened by them. */
  const listed = () => {
    if (connection.listed()) opened++;
  };
  const completed = () => {
    if (connection.completed()) opened++;
  };
  const open = () => {
    listed();
    completed();
  };

  it('is closed until it was listed and then shown', () => {
    expect(connection.closed).to.deep.equal({ code: 'not-listed', message: 'local:/pilots is being listed' });
    expect(connection.unlisted).to.deep.equal(connection.closed);
    listed();
    expect(connection.unlisted).to.equal(undefined);
    expect(connection.closed).to.deep.equal({
      code: 'status-unknown',
      message: 'local:/pilots has not shown its workers yet',
    });
    expect(opened).to.equal(0);
    completed();
    expect(connection.closed).to.equal(undefined);
    expect(opened).to.equal(1);
  });

  it('opens also when it was shown before it was listed', () => {
    completed();
    expect(connection.closed?.code).to.equal('not-listed');
    listed();
    expect(connection.closed).to.equal(undefined);
    expect(opened).to.equal(1);
  });

  it('says why it could not be listed, until it is', () => {
    connection.listFailed(trouble);
    expect(connection.closed).to.deep.equal({
      code: 'not-listed',
      message: 'local:/pilots could not be listed: no route to host',
    });
    open();
    expect(connection.closed).to.equal(undefined);
  });

  it('closes at once on trouble, and opens only with a complete answer', async () => {
    open();
    connection.troubled(trouble);
    expect(connection.closed).to.deep.equal({
      code: 'status-unknown',
      message: 'local:/pilots: no route to host',
    });
    listed();
    expect(connection.closed?.code).to.equal('status-unknown');
    expect(opened).to.equal(1);
    completed();
    expect(connection.closed).to.equal(undefined);
    expect(opened).to.equal(2);
  });

  it('closes when nothing was shown for too long', async () => {
    open();
    await clock.advance(120_000);
    expect(connection.closed).to.equal(undefined);
    await clock.advance(1000);
    expect(connection.closed).to.deep.equal({
      code: 'status-unknown',
      message: 'local:/pilots showed its workers last 121 s ago',
    });
    completed();
    expect(connection.closed).to.equal(undefined);
    expect(opened).to.equal(2);
  });

  it('does not open while it is open', () => {
    open();
    completed();
    listed();
    expect(opened).to.equal(1);
  });

  it('stays open when a later listing fails: what lives there was matched once', () => {
    open();
    connection.listFailed(trouble);
    expect(connection.closed).to.equal(undefined);
  });
});
